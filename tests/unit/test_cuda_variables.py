"""What the role cuda makes of its variables on each distribution, and what the server gets of it."""

import hashlib
import json

import ansible_play
import cuda_looks as looks
import pytest
import yaml

from blackwell import paths

LOCK = paths.ROOT / "requirements/cuda-13.0-compiler.txt"
WHEELS = {"cuda_source": "wheels", "cuda_wheels": "compiler", "cuda_wheelhouse": str(LOCK)}
"""The lock stands for a wheelhouse: the preflight asks only whether there is a file."""
PACKAGES = [("hi ", "cuda-toolkit-13-0", "13.0.2-1"), ("ii ", "g++", "4:12.2.0-3")]
SYSTEMS = {
    "debian 12": "debian12",
    "debian 13": "debian13",
    "ubuntu 22.04": "ubuntu2204",
    "ubuntu 24.04": "ubuntu2404",
}
NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/{}/x86_64"
REFUSED = {
    "fedora": (
        {"os": "fedora 43"},
        {},
        """The CUDA toolkit is installed on debian 12, debian 13, ubuntu 22.04, ubuntu
        24.04, not on fedora 43: install one of these, or name a toolkit that is there with cuda_manage: false and
        cuda_home.""",
    ),
    "arm": ({"machine": "aarch64"}, {}, "The CUDA toolkit is installed on x86_64, not on aarch64: use another host."),
    "disk": (
        {"disk_mb": "11999"},
        {},
        """/usr/local has 11999 MiB free, cuda_disk_mb asks for 12000: free some
        space.""",
    ),
    "disk for wheels": (
        {"disk_mb": "699"},
        WHEELS,
        """/opt/sglang/toolkits has 699 MiB free, cuda_disk_mb asks for 700:
        free some space, or put cuda_root on a larger file system.""",
    ),
    "own limit": (
        {"disk_mb": "20"},
        WHEELS | {"cuda_disk_mb": 21, "cuda_root": "/srv/cuda"},
        """/srv/cuda has 20 MiB free,
        cuda_disk_mb asks for 21: free some space, or put cuda_root on a larger file system.""",
    ),
    "old": ({}, {"cuda_version": "12.9"}, "cuda_version: 12.9 is not a version of CUDA 13, such as 13.0."),
    "other exact version": (
        {},
        {"cuda_package_version": "13.1.0-1"},
        """cuda_package_version: 13.1.0-1 is not of
        cuda_version 13.0: set both, or only the latter.""",
    ),
    "mirror": (
        {},
        {"cuda_source": "mirror"},
        """cuda_source: mirror needs cuda_mirror and cuda_mirror_key, which is not
        set.""",
    ),
    "package": (
        {},
        {"cuda_source": "package", "cuda_package_file": "/no/such.deb"},
        """cuda_package_file: /no/such.deb is
        not on the control machine: correct the path.""",
    ),
    "no wheelhouse": (
        {},
        {"cuda_source": "wheels"},
        """cuda_source: wheels needs cuda_wheelhouse, which is not set: make one
        with scripts/wheelhouse fetch --product cuda --variant libraries, and name what it prints.""",
    ),
    "no lock": (
        {},
        WHEELS | {"cuda_version": "13.9"},
        """cuda_version, cuda_wheels: there is no lock of these wheels
        (requirements/cuda-13.9-compiler.txt): choose one of cuda-13.0-compiler.txt, cuda-13.0-libraries.txt.""",
    ),
    "no python": (
        {"python": ""},
        WHEELS,
        """cuda_python: /usr/bin/python3 does not run on the host, and its pip unpacks the
        wheels: name another interpreter.""",
    ),
    "run file": (
        {"unpackaged": f"{looks.HOME}/bin/nvcc"},
        {},
        f"""No package owns {looks.HOME}/bin/nvcc, so a .run file
        installed that toolkit and packages would mix with it: run {looks.HOME}/bin/cuda-uninstaller, or use it with
        cuda_manage: false and cuda_home: {looks.HOME}.""",
    ),
    "both": (
        {},
        {"cuda_home": "/opt/cuda"},
        """cuda_home: /opt/cuda names a toolkit that is there already, and cuda_manage
        asks for one to be installed: remove one of the two.""",
    ),
    "not there": (
        {},
        {"cuda_manage": False, "cuda_home": "/opt/cuda"},
        """cuda_home: /opt/cuda on the host has no bin/nvcc:
        correct the path, or set cuda_manage to let the toolkit be installed.""",
    ),
    "relative": ({}, {"cuda_manage": False, "cuda_home": "cuda"}, "cuda_home: cuda is not an absolute path."),
}
ACCEPTED = {
    **{system: ({"os": system}, {}) for system in SYSTEMS},
    **{f"wheels {system}": ({"os": system}, WHEELS) for system in SYSTEMS},
    "mirror of the driver's": (
        {},
        {
            "cuda_source": "mirror",
            "nvidia_driver_mirror": "https://mirror.example/cuda/",
            "nvidia_driver_mirror_key": str(LOCK),
        },
    ),
    "just enough": ({"disk_mb": "12000"}, {}),
    "installed": ({"nvcc": looks.HOME, "disk_mb": "5"}, {}),
    "other version installed": ({"nvcc": looks.HOME}, {"cuda_package_version": "13.0.3-1"}),
    "without its nvcc": ({}, {"cuda_version": "13.0"}),
    # Refused by the argument specs, in one sentence.
    "unknown road": ({}, {"cuda_source": "conda"}),
    "unknown extent": ({}, WHEELS | {"cuda_wheels": "all"}),
    "given": ({"nvcc": "/opt/cuda"}, {"cuda_manage": False, "cuda_home": "/opt/cuda"}),
    "cpu": ({"os": "fedora 43"}, {"sglang_device": "cpu"}),
    "cpu that asks": ({}, {"sglang_device": "cpu", "cuda_manage": True} | WHEELS),
    "none": ({}, {"cuda_manage": False}),
}
WITH_PACKAGES = ("installed", "other version installed", "without its nvcc")
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - import_role: {name: cuda, tasks_from: preflight}
      when: false
    - import_role: {name: sglang, tasks_from: intent}
      when: false
    - set_fact:
        _cuda_raw: {stdout_lines: "{{ recorded }}"}
    - import_role: {name: cuda, tasks_from: intent}
      vars: {role_path: "ROOT/roles/cuda"}
    - set_fact:
        problems: "{{ _cuda_problems | map('trim') }}"
        environment_of_server: "{{ _sglang_device_environment[sglang_device] }}"
        release: "{{ _sglang_release_dir }}"
      vars: {role_path: "ROOT/roles/cuda"}
    - set_fact:
        settled: "{{ _cuda_settled }}"
        missing: "{{ _cuda_missing if _cuda_road else [] }}"
        archive: "{{ _cuda_archives[cuda_source] | default('') }}"
        words: "{{ _cuda_words }}"
        held: "{{ _cuda_held }}"
      vars: {role_path: "ROOT/roles/cuda"}
      when: not problems
""".replace("ROOT", str(paths.ROOT))


def named(case):
    return case.replace(" ", "_").replace("'", "")


@pytest.fixture(scope="module")
def resolved(tmp_path_factory):
    cases = ACCEPTED | {name: (values, variables) for name, (values, variables, _) in REFUSED.items()}
    hosts = {
        named(case): {"recorded": looks.printed(looks.BARE | values, PACKAGES if case in WITH_PACKAGES else ())}
        | variables
        for case, (values, variables) in cases.items()
    }
    return ansible_play.variables(tmp_path_factory.mktemp("cuda"), PLAYBOOK, hosts)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_one_sentence(resolved, case):
    assert [" ".join(problem.split()) for problem in resolved[named(case)]["problems"]] == [
        " ".join(REFUSED[case][2].split())
    ]


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(resolved, case):
    assert resolved[named(case)]["problems"] == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_packages_come_from_the_distributions_folder(resolved, system):
    found = resolved[named(system)]
    assert found["archive"] == NVIDIA.format(SYSTEMS[system])
    assert found["words"] == "cuda-toolkit-13-0=13.0.*"
    assert found["missing"] == ["g++"]
    assert found["_cuda_intent"]["home"] == looks.HOME


@pytest.mark.parametrize("system", SYSTEMS)
def test_wheels_are_a_tree_named_after_their_lock(resolved, system):
    found = resolved[named(f"wheels {system}")]
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    assert found["_cuda_intent"]["home"] == f"/opt/sglang/toolkits/cuda-13.0-compiler-{digest[:12]}/nvidia/cu13"
    assert found["missing"] == ["g++", "python3-venv"]


def test_the_drivers_mirror_serves_where_there_is_no_other(resolved):
    assert resolved[named("mirror of the driver's")]["archive"] == "https://mirror.example/cuda"


def test_what_is_installed_and_held_is_left_alone(resolved):
    found = resolved["installed"]
    assert (found["settled"], found["missing"], found["held"]) == (True, [], ["cuda-toolkit-13-0"])


@pytest.mark.parametrize("case", ["other version installed", "without its nvcc", "debian 12"])
def test_what_is_not_what_is_asked_for_is_installed(resolved, case):
    assert resolved[named(case)]["settled"] is False


def test_another_exact_version_is_asked_of_apt(resolved):
    assert resolved[named("other version installed")]["words"] == "cuda-toolkit-13-0=13.0.3-1"


@pytest.mark.parametrize(("case", "home"), [("debian 13", looks.HOME), ("given", "/opt/cuda")])
def test_the_server_finds_the_toolkit_and_ninja(resolved, case, home):
    found = resolved[named(case)]
    environment = found["environment_of_server"]
    assert environment["CUDA_HOME"] == home
    assert environment["PATH"].split(":")[:2] == [f"{found['release']}/venv/bin", f"{home}/bin"]
    assert "/usr/bin" in environment["PATH"].split(":")


def test_without_a_toolkit_the_server_is_told_of_none(resolved):
    assert resolved["none"]["environment_of_server"] == {}
    assert resolved["none"]["_cuda_intent"]["home"] == ""


@pytest.mark.parametrize("case", ["cpu", "cpu that asks"])
def test_a_server_on_the_cpu_gets_no_toolkit(resolved, case):
    assert "CUDA_HOME" not in resolved[named(case)]["environment_of_server"]


@pytest.mark.parametrize("path", sorted((paths.ROOT / "playbooks").rglob("*.yml")), ids=lambda path: path.name)
def test_a_playbook_that_knows_the_release_knows_the_toolkit(path):
    """Else it renders an environment without CUDA_HOME, which would be another deployment."""
    roles = json.dumps(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert '"name": "cuda"' in roles or '"name": "sglang"' not in roles


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [("cuda_source", "conda", "nvidia, mirror, package, wheels"), ("cuda_wheels", "all", "compiler, libraries")],
)
def test_an_unknown_road_is_named_once(resolved, load, name, value, known):
    options = yaml.safe_load((paths.ROOT / "roles/cuda/meta/argument_specs.yml").read_text(encoding="utf-8"))
    (said,) = load("roles/preflight/filter_plugins/variables.py").type_errors(
        {name: value}, options["argument_specs"]["main"]["options"]
    )
    assert f"value of {name} must be one of: {known}, got: {value}" in said
    assert resolved["unknown_road"]["problems"] == resolved["unknown_extent"]["problems"] == []
