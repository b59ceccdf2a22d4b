"""Which models are on a host, what of the others is to be fetched, and every reason why that cannot work."""

import json
import subprocess
import sys
import threading

import hub_mirror
import pytest
import yaml
from hub_mirror import REVISION, Faults, Mirror, made_model

from blackwell import paths

FILES = paths.ROOT / "roles/model/files"
TARGET, DRAFT = made_model(shards=2, size=5000), made_model(shards=1, size=7000)
WHOLE = {"target": sum(map(len, TARGET.values())), "draft": sum(map(len, DRAFT.values()))}
SHORT = REVISION[:12]


@pytest.fixture
def looking(load):
    return load("roles/model/files/look_at_models.py")


@pytest.fixture
def hub():
    made = hub_mirror.Server(Mirror({"org/target": TARGET, "org/draft": DRAFT}))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def told(hub, tmp_path):
    """What the role tells the program about a target and a draft."""

    def model(name, variable):
        path = tmp_path / "models" / f"org--{name}" / REVISION
        return {"unit": name, "variable": variable, "hub": hub.url, "repository": f"org/{name}", "revision": REVISION,
                "path": str(path)}  # fmt: skip

    models = [model("target", "model_repository"), model("draft", "model_draft_repository")]
    return {"host": "box", "directory": str(tmp_path / "models"), "token": "", "models": models}


def write(directory, files):
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)


def complete(directory, files):
    """A model as one that was fetched."""
    record = {"files": [{"path": name, "size": len(content)} for name, content in files.items()]}
    write(directory, files | {".fetched.json": json.dumps(record).encode()})


def test_of_absent_models_it_says_what_would_come_and_where_to(looking, told, tmp_path):
    found = looking.looked(told)
    assert found["problems"] == []
    assert {unit: (model["complete"], model["bytes"]) for unit, model in found["models"].items()} == {
        unit: (False, size) for unit, size in WHOLE.items()
    }
    model = told["models"][0]
    assert found["models"]["target"]["said"] == (
        f"org/target at {SHORT} from {model['hub']} into {model['path']}: 4 files, 10.0 kB"
    )
    assert list(tmp_path.iterdir()) == []


def test_what_came_before_is_not_asked_for_again(looking, told, tmp_path):
    gathered = tmp_path / "models/org--target" / f".partial-{REVISION}"
    write(gathered, {"model-1.safetensors": TARGET["model-1.safetensors"]})
    target = looking.looked(told)["models"]["target"]
    assert target["bytes"] == WHOLE["target"] - 5000
    assert target["said"].endswith("4 files, 10.0 kB, 5.0 kB of it are there")


def test_a_complete_model_needs_no_hub(looking, told, hub, tmp_path):
    complete(tmp_path / "models/org--target" / REVISION, TARGET)
    complete(tmp_path / "models/org--draft" / REVISION, DRAFT)
    found = looking.looked(told)
    assert [model["complete"] for model in found["models"].values()] == [True, True]
    assert (found["problems"], hub.mirror.log) == ([], [])


def test_a_model_whose_file_was_changed_is_refused_and_names_it(looking, told, tmp_path):
    model = tmp_path / "models/org--target" / REVISION
    complete(model, TARGET)
    (model / "sub/tokenizer.json").write_bytes(b"{")
    found = looking.looked(told)
    assert found["models"]["target"]["complete"] is False
    (problem,) = found["problems"]
    assert problem == (
        f"model_repository: {model} is not as it was fetched (sub/tokenizer.json is another): "
        "remove it, and it is fetched anew."
    )


def test_every_problem_is_told_at_once_by_its_variable(looking, told):
    told["models"][0]["revision"] = "0" * 40
    told["models"][1]["repository"] = "org/other"
    commit, repository = looking.looked(told)["problems"]
    assert commit.startswith("model_repository: http://127.0.0.1:")
    assert commit.endswith("answers 404 for org/target at 000000000000: there is no such commit.")
    assert repository.startswith("model_draft_repository: ")
    assert repository.endswith(f"for org/other at {SHORT}: there is no such repository, commit or file.")


@pytest.mark.parametrize(("free", "fits"), [(sum(WHOLE.values()), True), (sum(WHOLE.values()) - 1, False)])
def test_the_disk_must_hold_both_of_them_together(looking, told, monkeypatch, free, fits):
    monkeypatch.setattr(looking, "bytes_free", lambda _: free)
    said = (
        "model_directory: box, org/target and org/draft: 17.1 kB are still to be fetched, "
        f"and {told['directory']} has 17.1 kB free: make room, or name a larger file system in model_directory."
    )
    assert looking.looked(told)["problems"] == ([] if fits else [said])


def test_it_runs_from_its_standard_input_which_alone_holds_the_token(told, hub):
    hub.mirror.faults = Faults(token="hf_secret")
    told["token"] = "hf_secret"
    variables = yaml.safe_load((paths.ROOT / "roles/model/vars/main/sources.yml").read_text())
    told["modules"] = [[name, (FILES / f"{name}.py").read_text()] for name in variables["_model_look_modules"]]
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", variables["_model_look_loader"]],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["problems"] == []
    assert {entry["token"] for entry in hub.mirror.settled()} == {"Bearer hf_secret"}
    assert "hf_secret" not in done.stdout
