"""The texts of a series and its manifest, and where a release's series is."""

import json

import pytest

from blackwell import paths
from blackwell.patches.errors import PatchesError
from blackwell.patches.series import manifest_text, series_directory, series_text


@pytest.mark.parametrize("path", sorted((paths.ROOT / "patches").glob("*/manifest.json")), ids=lambda p: p.parent.name)
def test_a_manifest_of_the_project_is_written_as_it_is(path):
    assert json.loads(manifest_text(json.loads(path.read_text()))) == json.loads(path.read_text())
    assert manifest_text(json.loads(path.read_text())) == path.read_text()


def test_a_manifest_has_a_line_for_each_patch_and_file():
    text = manifest_text({"patches": [{"file": "a"}, {"file": "b"}], "files": {"x": "1", "y": None}, "tree": "t"})
    assert text == (
        '{\n  "patches": [\n    {"file": "a"},\n    {"file": "b"}\n  ],\n'
        '  "files": {\n    "x": "1",\n    "y": null\n  },\n  "tree": "t"\n}\n'
    )


def test_the_comment_of_a_series_stays():
    assert series_text("# about\n#\n\na.patch\n# not this\n", ["b.patch"]) == "# about\n#\n\nb.patch\n"


def test_a_release_that_is_not_there_is_named_with_those_that_are(tmp_path):
    with pytest.raises(PatchesError, match=r"known releases: none$"):
        series_directory(tmp_path, "9")
    with pytest.raises(PatchesError, match=r"sglang-9/manifest\.json; known releases: .*0\.5\.9"):
        series_directory(paths.ROOT, "9")
