"""The table of a comparison, with numbers known beforehand."""

import json

from blackwell.bench import points, table

MEDIANS = {
    1: {"base": 100, "full_stock": 200, "full": 210, "plain": 99, "reduced1": 150, "reduced2": 189, "dynamic": 205.8},
    30: {"base": 1000, "full_stock": 700, "full": 690, "plain": 985, "reduced1": 1100, "reduced2": 900, "dynamic": 980},
}


def row(arm, level, speed, repeat=1, marked=None):
    return dict.fromkeys(points.KEYS) | {
        "arm": arm,
        "c": level,
        "repeat": repeat,
        "tok_s": speed,
        "marked": marked,
        "running_batch": level,
        "in_flight_min": level,
    }


def rows():
    return [
        row(arm, level, speed * factor, repeat)
        for level, at in MEDIANS.items()
        for arm, speed in at.items()
        for repeat, factor in ((1, 0.98), (2, 1.0), (3, 1.03))
    ]


TABLE = """\
| clients | base | full_stock | full | plain | reduced1 | reduced2 | dynamic | dynamic / best static | plain / base \
| best reduced / best other | spread of base |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
| 1 | 100 | 200 | 210 | 99 | 150 | 189 | 206 | 0.980 | 0.990 | 0.900 | 5.0 % |
| 30 | 1000 | 700 | 690 | 985 | 1100 | 900 | 980 | 0.980 | 0.985 | 1.100 | 5.0 % |
"""


def test_medians_ratios_and_spread():
    assert table.render(rows()) == TABLE


def test_marked_points_are_left_out_and_named():
    found = [*rows(), row("base", 30, 9e9, 4, marked="only 100 of 250 requests were in flight")]
    marked = "\nLeft out:\n\n- base at 30, repeat 4: only 100 of 250 requests were in flight\n"
    assert table.render(found) == TABLE + marked


def test_what_was_not_measured_is_a_dash():
    found = [
        found for found in rows() if found["arm"] in {"base", "plain"} and (found["arm"], found["c"]) != ("base", 30)
    ]
    *_, first, second = table.render(found).splitlines()
    assert first == "| 1 | 100 | 99 | - | 0.990 | - | 5.0 % |"
    assert second == "| 30 | - | 985 | - | - | - | - |"


def test_the_command_prints_the_table_of_a_file(tmp_path, capsys):
    points.write(tmp_path / "rows.json", rows())
    assert table.main([str(tmp_path / "rows.json")]) == 0
    assert capsys.readouterr().out == TABLE
    (tmp_path / "rows.json").write_text(json.dumps({}))
    assert table.main([str(tmp_path / "rows.json")]) == 1
    assert capsys.readouterr().err == f"{tmp_path / 'rows.json'} holds no list of rows\n"
