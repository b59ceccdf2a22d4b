"""What is deployed: kept as JSON, and compared with what its files say."""

import json

import pytest
from sweep_units import ARGV, OPTIONS, PROGRAM, PYTHON, deployed, rendered

from blackwell.bench.errors import BenchError
from blackwell.sweep import deployed as deployments
from blackwell.sweep import release_check

NAME = "0123456789abcdef"


@pytest.fixture
def releases(tmp_path):
    """A directory of releases with the one that is deployed; the command line that runs it."""
    release = tmp_path / "releases" / "0.5.9-f43cee65b1a2"
    release.mkdir(parents=True)
    (release / "release.json").write_text("{}")
    return release.parent, (f"{release}/venv/bin/python", *ARGV[1:])


def another(releases, argv=None, stated=NAME, **changes):
    directory, running = releases
    argv = running if argv is None else argv
    return deployments.another(deployed(argv, **({"unit": rendered(argv)} | changes)), stated, directory)


def test_what_is_kept_is_what_was_written(tmp_path):
    found = deployed(drop_ins={"/etc/systemd/system/sglang.service.d/a.conf": "[Service]\nMemoryMax=1G\n"})
    deployments.write(tmp_path, found)
    assert deployments.kept(tmp_path) == found


def test_what_may_leave_the_host_is_the_command_line_alone(tmp_path):
    deployments.write(tmp_path, deployed(drop_ins={"/x/a.conf": "[Service]\nEnvironment=API_KEY=secret\n"}))
    assert json.loads((tmp_path / deployments.TOLD).read_text()) == {"argv": list(deployed().argv)}


def test_nothing_is_kept_in_a_directory_without_the_file(tmp_path):
    assert deployments.kept(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"argv": 1}'])
def test_a_file_that_says_something_else_is_named(tmp_path, text):
    (tmp_path / deployments.FILE).write_text(text)
    with pytest.raises(BenchError, match=r"service\.json does not say what was deployed"):
        deployments.kept(tmp_path)


def test_of_another_field_too(tmp_path):
    deployments.write(tmp_path, deployed())
    file = tmp_path / deployments.FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"colour": "blue"}))
    with pytest.raises(BenchError, match="colour"):
        deployments.kept(tmp_path)


def test_drop_ins_count_after_the_unit_in_their_order():
    found = deployed(drop_ins={"/x/a.conf": "[Service]\nMemoryMax=1G\n", "/x/b.conf": "[Service]\nMemoryMax=2G\n"})
    assert [one.value for one in found.settings if one.name == "MemoryMax"] == ["infinity", "1G", "2G"]


def test_a_server_that_is_what_its_files_say(releases):
    assert another(releases) == ""
    assert another(releases, stated=None) == ""


def test_a_command_line_that_the_unit_does_not_state(releases):
    _, running = releases
    told = another(releases, unit=rendered((*running, "--tp-size", "2")))
    assert told == (
        "runs with another command line than its unit states: deploy again (ansible-playbook site.yml), or restart it"
    )


def test_a_drop_in_that_states_it_counts(releases):
    directory, running = releases
    drop_in = {"/x/a.conf": f"[Service]\nExecStart=\nExecStart={running[0]} -m sglang.launch_server\n"}
    assert "another command line" in another(releases, drop_ins=drop_in)
    found = deployed(running[:3], unit=rendered(running), drop_ins=drop_in)
    assert deployments.another(found, NAME, directory) == ""


def test_an_environment_of_another_deployment(releases):
    told = another(releases, stated="feedfeedfeedfeed")
    assert told.startswith(f"runs deployment {NAME} and its files are those of feedfeedfeedfeed: deploy again")


@pytest.mark.parametrize(
    "argv",
    [
        ("/usr/bin/python3", *PROGRAM[1:], *OPTIONS),
        ("RELEASES/0.5.9-f43cee65b1a2/venv/bin/python", "-m", "vllm", *OPTIONS),
        ("RELEASES/0.5.8-incomplete/venv/bin/python", *PROGRAM[1:], *OPTIONS),
        ("RELEASES/0.5.9-f43cee65b1a2/../../bin/python", *PROGRAM[1:], *OPTIONS),
    ],
)
def test_what_is_no_release_is_named(releases, argv):
    argv = (argv[0].replace("RELEASES", str(releases[0])), *argv[1:])
    told = another(releases, argv)
    assert told == (
        f"does not run a release of {releases[0]}: its command line begins with {argv[0]} {argv[1]} {argv[2]}"
    )


def test_a_unit_from_which_no_other_can_be_made(releases):
    told = another(releases, drop_ins={"/x/a.conf": "[Service]\nExecStop=/bin/drain\n"})
    assert told == "has ExecStop=/bin/drain, which would run for the bench's server as well"


def test_environment_files_in_their_order():
    found = deployed(drop_ins={"/x/a.conf": "[Service]\nEnvironmentFile=-/etc/more.env\n"})
    assert deployments.environment_files(found.settings) == ("/etc/sglang/sglang.env", "/etc/more.env")


def test_what_the_command_line_tells():
    found = deployed()
    assert (found.address, found.url) == (("127.0.0.1", 30000), "http://127.0.0.1:30000")
    assert (found.steps, found.most_requests) == (3, 8)


def test_the_release_is_asked_as_its_server_runs():
    words = release_check.words_for(deployed(environment_files=("/etc/sglang/sglang.env", "/etc/more.env")))
    assert [word for word in words if "=" in word and "\n" not in word] == [
        "--property=User=sglang",
        "--property=Group=sglang",
        "--property=EnvironmentFile=-/etc/sglang/sglang.env",
        "--property=EnvironmentFile=-/etc/more.env",
        "--property=WorkingDirectory=/opt/sglang/releases/0.5.9-f43cee65b1a2/cache",
    ]
    assert words[-3:-1] == [PYTHON, "-c"]
