"""The options that a patch series adds to the server are those that its manifest names."""

import json
import re
from collections import Counter

import pytest

from blackwell import paths

SERVER_ARGS = "sglang/srt/server_args.py"
SERIES = sorted(path.parent for path in (paths.ROOT / "patches").glob("*/manifest.json"))


def added(patches):
    """Options that patches add to server_args.py, on balance, as they stand in its calls of add_argument."""
    count = Counter()
    for text in patches:
        file = ""
        for line in text.splitlines():
            if line.startswith("+++ "):
                file = line.split()[1].removeprefix("b/")
            option = re.match(r'([+-])\s*(?:\w+\.add_argument\()?"(--[a-z0-9-]+)"', line)
            if option and file == SERVER_ARGS:
                count[option[2]] += 1 if option[1] == "+" else -1
    return sorted(option for option, balance in count.items() if balance > 0)


@pytest.mark.parametrize("patches", SERIES, ids=lambda path: path.name)
def test_the_manifest_names_what_the_series_adds(patches):
    manifest = json.loads((patches / "manifest.json").read_text())
    texts = [(patches / entry["file"]).read_text() for entry in manifest["patches"]]
    assert sorted(manifest["options"]) == added(texts)


@pytest.mark.parametrize("patches", SERIES, ids=lambda path: path.name)
def test_each_option_has_a_default_and_a_type_or_an_action(patches):
    options = json.loads((patches / "manifest.json").read_text())["options"]
    assert [
        name for name, said in options.items() if set(said) not in ({"default", "type"}, {"default", "action"})
    ] == []


def test_what_counts_as_added():
    first = f"""--- a/{SERVER_ARGS}
+++ b/{SERVER_ARGS}
@@ -1,2 +1,5 @@
 parser.add_argument(
-    "--moved",
+    "--one",
+    "--moved",
+parser.add_argument("--two", type=int)
     help="Like --three",
--- a/sglang/bench.py
+++ b/sglang/bench.py
@@ -1 +1,2 @@
+    "--three",
"""
    second = f'--- a/{SERVER_ARGS}\n+++ b/{SERVER_ARGS}\n@@ -1 +1 @@\n-    "--one",\n+    "--one-more",\n'
    assert added([first, second]) == ["--one-more", "--two"]
