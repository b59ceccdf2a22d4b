import pytest
from looks import BY_LOAD, HOST, INFORMATION, LOAD_STATE, LOOK, NOT_FOUND, RANK, answer

from blackwell import status, status_screen


def screen(**changes):
    found = {name: value for name, value in (LOOK | changes).items() if value is not None}
    return status_screen.render(status.parse(HOST, "ops", found))


def test_the_screen():
    assert (
        screen(previous={})
        == """\
box: ready
  host        ops@10.0.0.1, inventory /inv
  unit        active (running) for 6 min 20 s, since 2026-11-29 13:52:14 UTC; 0 restarts by systemd; memory 1.0 GiB
  release     0.5.9-c1e502af0b3c.3
  deployment  running 5f778176afecd71f (0.5.9-c1e502af0b3c.3); good the same; previous none
  server      127.0.0.1 port 30000, /health 200 in 0.25 s; counting on SGLang 0.5.9
  load        3 running of at most 8, 2 waiting; 3.9 tokens/s of late; acceptance length 2.24
  disk        75.0 GiB free of 250.0 GiB at /opt/sglang
  last 1 warnings and errors, in UTC:
    2026-11-29 13:51:43  sglang.service: Failed with result 'exit-code'."""
    )


def test_the_first_line_says_why_it_is_not_ready():
    assert screen(health=answer("", 503)).splitlines()[0] == "box: NOT READY: /health answers 503"


def test_a_host_without_the_service_shows_nothing_of_it():
    shown = screen(unit=NOT_FOUND, health=None, journal=[])
    assert shown == f"box: NOT READY: {status.NO_SERVICE}\n  host        ops@10.0.0.1, inventory /inv"


def test_what_may_not_be_read_is_unknown_and_not_none():
    shown = screen(good={"error": "Permission denied"}, previous={"error": "Permission denied"})
    assert "running 5f778176afecd71f (0.5.9-c1e502af0b3c.3); good and previous unknown" in shown


def test_a_record_that_is_not_there_is_none():
    assert "running none; good none; previous none" in screen(running={}, good={}, previous={})


def test_the_policy_and_where_the_server_is_in_it():
    shown = screen(information=answer(INFORMATION | BY_LOAD)).splitlines()
    assert shown[7] == "  speculation 3 steps up to 8 requests, plain above (margin 2, dwell 16); now 3 steps"


def test_what_is_forced_is_said_loudly():
    forced = RANK | {"speculative_load_state": LOAD_STATE | {"forced_steps": 0, "steps": 0}}
    shown = screen(information=answer(INFORMATION | BY_LOAD | {"internal_states": [forced]}))
    assert "  speculation FORCED to plain whatever the load, in place of 3 steps up to 8 requests, plain above" in shown
    assert (
        "  remark      draft steps are FORCED to plain whatever the load: fab -H box speculation --release lets them "
        "follow it again" in shown
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (0.4, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90061, "1 d 1 h")],
)
def test_age(seconds, text):
    assert status_screen.age(seconds) == text


def test_a_message_fits_one_line_and_moves_no_cursor():
    assert status_screen.first_line("\x1b[31mred\nsecond") == " [31mred"
    assert status_screen.first_line("x" * 500) == "x" * 159 + "…"
    assert status_screen.first_line("\n") == ""
