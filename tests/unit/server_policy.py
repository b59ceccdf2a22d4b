"""The patched server's own module of load policies, which a patch adds as a whole."""

import importlib.util

from blackwell import paths

PATCH = paths.ROOT / "patches" / "sglang-0.5.9" / "load-policy.patch"


def load(directory):
    """The module, by a file in a directory."""
    lines = PATCH.read_text(encoding="utf-8").splitlines()
    (begin,) = [number for number, line in enumerate(lines) if line.startswith("@@ -0,0 ")]
    file = directory / "load_policy.py"
    file.write_text("\n".join(line[1:] for line in lines[begin + 1 :]) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("server_load_policy", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
