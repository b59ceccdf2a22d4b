"""The sentences of the verification, and the programs that it runs on a host."""

import base64
import hashlib
import json
import os
import subprocess
import sys

import pytest
from looks import BY_LOAD, INFORMATION, LOAD_STATE, RANK

from blackwell import paths

ASKED = {"tiers": LOAD_STATE["tiers"], "margin": 2, "dwell": 16}
STRANGE = "which nobody asks for: systemctl cat sglang and systemctl show-environment may tell who sets it"
THRESHOLD = "--speculative-disable-batch-threshold"
FUSION = "--disable-flashinfer-allreduce-fusion"
ADDED = {THRESHOLD: {"default": 0, "type": "int"}, FUSION: {"default": False, "action": "store_true"}}
SERVER_ARGS = """
class ServerArgs:
    model_path: str
    speculative_disable_batch_threshold: int = 0
    disable_flashinfer_allreduce_fusion: bool = False

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument(
            "--speculative-disable-batch-threshold",
            type=int,
            default=ServerArgs.speculative_disable_batch_threshold,
            help="Largest batch",
        )
        parser.add_argument("--disable-flashinfer-allreduce-fusion", action="store_true")
"""
REBUILD = "set sglang_release_revision and deploy, which builds the release again"
RESTART = "it was changed while the server ran, and systemctl restart sglang returns to what is deployed"


@pytest.fixture(scope="session")
def differences(load):
    return load("tests/verify/differences.py")


@pytest.fixture
def package(tmp_path):
    """A source tree as a release has it, with the RECORD of its wheel."""
    files = {
        "sglang/__init__.py": "a = 1\n",
        "sglang/version.py": "1\n",
        "sglang/old.py": "b = 1\n",
        "sglang/srt/server_args.py": SERVER_ARGS,
    }
    rows = []
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(text)}")
    record = tmp_path / "sglang-1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("\n".join([*rows, "sglang-1.dist-info/RECORD,,"]) + "\n")
    return tmp_path


def program(package, name, *arguments):
    """Output of a program of tests/verify as on a host whose interpreter imports the package."""
    words = [sys.executable, paths.ROOT / "tests" / "verify" / name, *arguments]
    done = subprocess.run(
        words, env=os.environ | {"PYTHONPATH": str(package)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compared(package, files=()):
    asked = {"files": dict(files), "generated": ["sglang/_patch_tree"]}
    return program(package, "compare_sources.py", json.dumps(asked))


def test_a_tree_that_is_right(package):
    (package / "sglang/_patch_tree").write_text("generated\n")
    (package / "sglang/__pycache__").mkdir()
    (package / "sglang/__pycache__/x.pyc").touch()
    assert compared(package) == {"edited": [], "stray": [], "missing": []}


def test_the_series_decides_over_the_wheel(package):
    changed = {"sglang/version.py": b"2\n", "sglang/srt/load.py": b"new\n"}
    for name, content in changed.items():
        (package / name).write_bytes(content)
    (package / "sglang/old.py").unlink()
    files = {name: hashlib.sha256(content).hexdigest() for name, content in changed.items()}
    assert compared(package, files | {"sglang/old.py": None}) == {"edited": [], "stray": [], "missing": []}


def test_a_file_that_the_series_removes_is_stray(package):
    found = compared(package, {"sglang/old.py": None})
    assert found == {"edited": [], "stray": ["sglang/old.py"], "missing": []}


def test_every_file_that_differs_is_named(package, differences):
    files = {"sglang/srt/server_args.py": "0" * 64}
    (package / "sglang/version.py").unlink()
    (package / "sglang/__init__.py").write_text("a = 2\n")
    (package / "sglang/srt/aside.py").touch()
    assert differences.source_differences(compared(package, files), files) == [
        f"sglang/__init__.py differs from the stock package: {REBUILD}",
        f"sglang/srt/server_args.py differs from the patch series: {REBUILD}",
        f"sglang/srt/aside.py is neither in the stock package nor in the patch series: {REBUILD}",
        f"sglang/version.py is missing: {REBUILD}",
    ]


def test_options_that_the_series_adds(package, differences):
    found = program(package, "read_server_args.py")
    assert set(found["options"]) == {"--model-path", "--model", THRESHOLD, FUSION}
    assert differences.option_differences(ADDED, found) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "batch_threshold: int = 0",
            "batch_threshold: int = 8",
            f"{THRESHOLD} has the default 8 as the field speculative_disable_batch_threshold, not 0",
        ),
        (
            "    speculative_disable_batch_threshold: int = 0\n",
            "",
            f"{THRESHOLD} has no field speculative_disable_batch_threshold of ServerArgs",
        ),
        ('"--speculative-disable', '"--speculative-enable', f"{THRESHOLD} is no argument of add_cli_args"),
        ("type=int", "type=float", f"{THRESHOLD} has type=float, not int"),
        (
            "default=ServerArgs.speculative_disable_batch_threshold",
            "default=0",
            f"{THRESHOLD} has default=0, not ServerArgs.speculative_disable_batch_threshold",
        ),
        ("store_true", "store_false", f"{FUSION} has action='store_false', not 'store_true'"),
    ],
)
def test_an_option_that_is_otherwise_is_named(package, differences, old, new, problem):
    file = package / "sglang/srt/server_args.py"
    assert SERVER_ARGS.count(old) == 1
    file.write_text(SERVER_ARGS.replace(old, new))
    found = program(package, "read_server_args.py")
    assert differences.option_differences(ADDED, found) == [f"{problem} in {file}: {REBUILD}"]


def reported(**changes):
    return BY_LOAD | {"internal_states": [RANK | {"speculative_load_state": LOAD_STATE | changes}]}


TIERS = "3 steps up to 8 requests, plain above"
WORDS = f"{TIERS} (margin 2, dwell 16)"
LET_GO = "fab -H box speculation --release lets them follow it again"


def test_the_load_policy_that_is_asked_for(differences):
    assert differences.load_differences(ASKED, reported(), "box") == []
    assert differences.load_differences(None, INFORMATION, "box") == []


@pytest.mark.parametrize(
    ("asked", "information", "sentence"),
    [
        (ASKED, INFORMATION, f"box reports no speculative_load_state, asked for is: {WORDS}"),
        (None, reported(), f"box speculates by {WORDS}, which nobody asks for: {RESTART}"),
        (
            ASKED,
            reported(margin=0),
            f"box speculates by {TIERS} (margin 0, dwell 16), asked for is {WORDS}: {RESTART}",
        ),
        (
            ASKED,
            reported(dwell=1),
            f"box speculates by {TIERS} (margin 2, dwell 1), asked for is {WORDS}: {RESTART}",
        ),
        (
            ASKED,
            reported(tiers=[{"steps": 3}]),
            f"box speculates by 3 steps at any load (margin 2, dwell 16), asked for is {WORDS}: {RESTART}",
        ),
        (
            ASKED,
            reported(forced_steps=0),
            f"box has its draft steps forced to plain whatever the load: {LET_GO}",
        ),
        (
            ASKED,
            {"internal_states": [{"speculative_load_state": {"version": 2}}]},
            'box reports a speculative_load_state that cannot be read: [{"version": 2}]',
        ),
    ],
)
def test_another_load_policy(differences, asked, information, sentence):
    assert differences.load_differences(asked, information, "box") == [sentence]


@pytest.mark.parametrize(
    ("patched", "reported", "said"),
    [(True, "c1e5", []), (True, None, ["unknown"]), (True, "ffff", ["ffff"]), (False, None, [])],
)
def test_the_tree_of_the_running_server(differences, patched, reported, said):
    series = {"patched": patched, "tree": "c1e5"}
    found = differences.tree_difference(series, {"patch_tree": reported}, "box")
    tail = "the patch series makes c1e5: deploy with site.yml"
    assert found == [f"box runs from the source tree {tree}, {tail}" for tree in said]


@pytest.mark.parametrize(
    ("running", "said"),
    [
        ({"OMP_NUM_THREADS": "8", "HOME": "/there", "PATH": "/bin"}, []),
        (
            {"OMP_NUM_THREADS": "s3cret"},
            [
                "the process has no HOME in its environment: deploy with site.yml",
                "the process has another OMP_NUM_THREADS in its environment: deploy with site.yml",
            ],
        ),
        (
            {"OMP_NUM_THREADS": "8", "HOME": "/there", "NCCL_ALGO": "s3cret"},
            [f"the process has NCCL_ALGO in its environment, {STRANGE}"],
        ),
    ],
)
def test_the_environment_of_a_process(differences, running, said):
    assert differences.environment_differences({"OMP_NUM_THREADS": 8, "HOME": "/there"}, running) == said
