"""The servers that the profiles of sglang_server ask for, rendered for a box of eight cards; no host is contacted."""

import json
from pathlib import Path

import yaml
from target import BIN, Target

from blackwell import paths

PROFILES = paths.ROOT / "roles" / "sglang_server" / "vars" / "main" / "profiles.yml"
# GLM-5's draft is a layer of the model itself.
DRAFTS = {"glm5_nvfp4": "/models/glm5_nvfp4"}
DEFAULT_DRAFT = "/models/eagle3"


def hosts() -> dict[str, dict]:
    """The variables of a host for each profile, with and without a draft."""
    found = {}
    for profile in yaml.safe_load(PROFILES.read_text(encoding="utf-8"))["_sglang_server_profiles"]:
        plain = {"sglang_device": "cuda", "sglang_server_profile": profile, "model_path": f"/models/{profile}"}
        draft = {
            "model_draft_path": DRAFTS.get(profile, DEFAULT_DRAFT),
            "sglang_server_speculative_disable_batch_threshold": 8,
        }
        found |= {profile: plain, f"{profile}-draft": plain | draft}
    return found


def render(target: Target, scratch: Path) -> dict[str, dict]:
    """What ``playbooks/intent.yml`` asks of the server of each host; ``scratch`` is a directory for files.

    ``target`` lends its way to run commands.
    """
    inventory, out = scratch / "hosts.json", scratch / "intent.json"
    inventory.write_text(json.dumps({"sglang_hosts": {"hosts": hosts()}}), encoding="utf-8")
    words = [BIN / "ansible-playbook", "playbooks/intent.yml", "-i", inventory, "-e", f"verify_intent={out}"]
    done = target.command(*words)
    assert done.returncode == 0, done.output
    return {name: asked["server"] for name, asked in json.loads(out.read_text(encoding="utf-8")).items()}
