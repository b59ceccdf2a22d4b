"""What is wrong with a host's cards: the preflight's doctor of the GPUs, asked while the server runs."""

import json
from collections.abc import Mapping

from blackwell import paths, role_defaults
from blackwell.findings import PROBLEM, WARNING, Finding

PROGRAM = paths.ROOT / "roles/preflight/files/gpu_doctor.py"

OPTIONS: Mapping[str, str] = {
    "--driver": "preflight_gpu_driver",
    "--capability": "preflight_gpu_capability",
    "--refuse-nccl": "preflight_gpu_nccl_refused",
    "--warn": "preflight_gpu_warnings",
}
"""Its options, and the variables of the role preflight that give them."""


def wanted(variables: Mapping[str, object]) -> dict | None:
    """``gpus`` of ``on_host.doctor`` for a host with these variables; None where no card is wanted.

    Variables are taken as they are written. What only a play can resolve is left to the program's own defaults.
    """
    count = _count(variables)
    if not count:
        return None
    found = {option: _words(variables, name) for option, name in OPTIONS.items()}
    options = [f"{option}={words}" for option, words in found.items() if words is not None]
    return {"program": PROGRAM.read_text(encoding="utf-8"), "arguments": ["--json", f"--gpus={count}", *options]}


def _count(variables: Mapping[str, object]) -> int:
    count = role_defaults.number(variables, "preflight", "preflight_gpu_count")
    if count is not None:
        return count
    # As the role's own default has it.
    if role_defaults.value(variables, "sglang", "sglang_device") == "cpu":
        return 0
    return role_defaults.number(variables, "sglang_server", "sglang_server_tp_size") or 1


def _words(variables: Mapping[str, object], name: str) -> str | None:
    value = role_defaults.value(variables, "preflight", name)
    words = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return None if "{{" in words else words


def findings(found: Mapping[str, str] | None) -> list[Finding]:
    """The findings by ``gpus`` of what ``on_host.doctor`` returned; none where no card was wanted."""
    if found is None:
        return []
    if "error" in found:
        what = f"the GPUs could not be looked at: {found['error']}"
        level = PROBLEM if "no answer" in found["error"] else WARNING
        return [Finding(level, what, "on the host: nvidia-smi; dmesg | grep -i nvrm")]
    told = json.loads(found["text"])["findings"]
    return [
        Finding(one["level"], f"{one['what']} ({one['name']})" if one["remedy"] else one["what"], one["remedy"])
        for one in told
    ]
