"""``fab threshold`` and ``fab speculation`` as they are typed, on a host that is reached over SSH."""

import json

import live_host
import pytest
import server_policy

from blackwell import speculation_file, threshold
from blackwell.host_errors import HostError
from blackwell.speculation_setting import POLICY, THRESHOLD, Setting

EIGHT = "3 steps up to 8 requests, plain above (margin 2, dwell 16)"
TWELVE = "3 steps up to 12 requests, plain above (margin 2, dwell 16)"
DEPLOY = "ansible-playbook site.yml -i {} --limit box"
ALWAYS = "3 steps at any load, no threshold and no policy"


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return server_policy.load(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def live(policy, tmp_path, monkeypatch):
    """A host whose server was started with the threshold of its inventory."""
    sglang = live_host.started(policy, 8)
    with live_host.running(tmp_path, sglang, monkeypatch, **{THRESHOLD: 8}) as running:
        yield running


@pytest.fixture
def without(policy, tmp_path, monkeypatch):
    """A host whose server was started without a threshold."""
    with live_host.running(tmp_path, live_host.started(policy, 0), monkeypatch) as running:
        yield running


def refused(done):
    """The only sentence of a command that failed."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def read(live):
    return speculation_file.read(live.file)


def test_it_shows_who_says_what(live):
    done = live.fab("threshold")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "box:",
        f"  inventory  {EIGHT}",
        f"             {THRESHOLD}: 8 ({live.inventory} itself)",
        f"  live       {EIGHT}; now 3 steps",
    ]


def test_another_one_is_live_and_kept(live):
    done = live.fab("threshold", "12")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "box:",
        f"  before  {EIGHT}; now 3 steps",
        f"  after   {TWELVE}; now 3 steps",
        f"  kept    in {live.file}; fab -H box threshold --undo puts the one before back",
        f"  A restart returns to what is deployed, until this has deployed it: {DEPLOY.format(live.inventory)}",
    ]
    assert live.sglang.changes == [{"speculative_disable_batch_threshold": 12}]
    assert (read(live).setting, read(live).origin.command) == (Setting(12), "fab -H box threshold 12")
    shown = live.fab("threshold").stdout.splitlines()
    assert shown[1] == f"  inventory  {TWELVE}"
    assert shown[3:5] == [
        f"             {live.file} says so",
        f"             written by fab -H box threshold 12, {read(live).origin.date}",
    ]
    assert shown[6] == (
        f"  remark     the server was started with {EIGHT}, the inventory asks for {TWELVE}, which is live already: "
        f"{DEPLOY.format(live.inventory)} deploys that, with a restart"
    )


def test_undone_it_is_as_before_there_and_here(live):
    assert live.fab("threshold", "12").returncode == 0
    done = live.fab("threshold", "--undo")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"after   {EIGHT}" in done.stdout
    assert (
        f"removed {live.file}, which was not there before; fab -H box threshold --undo writes it again" in done.stdout
    )
    assert live.sglang.changes[-1] == {"speculative_disable_batch_threshold": 8}
    assert not live.file.exists()


def test_live_only(live):
    done = live.fab("threshold", "12", "--live-only")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "  A restart of the service returns to the deployed policy."
    assert live.sglang.controller.snapshot()["tiers"][0]["max_batch"] == 12
    assert not live.file.exists()
    assert f"remark     the server was changed while it ran, to {TWELVE}" in live.fab("threshold").stdout


def test_inventory_only(live):
    done = live.fab("threshold", "--to", "12", "--inventory-only")
    assert (done.returncode, done.stderr) == (0, "")
    assert live.sglang.changes == []
    assert read(live).setting == Setting(12)


@pytest.mark.parametrize("words", [("12",), ("--undo",)])
def test_a_dry_run(live, words):
    assert live.fab("threshold", "10").returncode == 0
    before = live.file.read_text(), list(live.sglang.changes)
    done = live.fab("threshold", *words, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    would = {
        "12": [
            '  would send  POST /set_internal_state {"server_args": {"speculative_disable_batch_threshold": 12}}',
            f'  would write {live.file}: {{"{THRESHOLD}": 12}}',
        ],
        "--undo": ["  would send  what the rest of the inventory asks for", f"  would remove {live.file}"],
    }
    assert done.stdout.splitlines()[2:4] == would[words[0]]
    assert (live.file.read_text(), live.sglang.changes) == before


def test_what_the_server_does_not_take_is_not_kept(live):
    live.sglang.refusal = "not now."
    said = refused(live.fab("threshold", "12"))
    assert said == "fab: box: nothing was changed, the server answered 400: not now.\n"
    assert len(live.sglang.changes) == 1
    assert not live.file.parent.exists()


def test_what_the_inventory_cannot_take_is_not_sent(live):
    assert live.fab("threshold", "12").returncode == 0
    live.file.write_text(live.file.read_text().replace("12", "13"))
    said = refused(live.fab("threshold", "14"))
    assert said.startswith(f"fab: {live.file} was written or changed by hand")
    assert len(live.sglang.changes) == 1
    assert live.fab("threshold", "14", "--force").returncode == 0
    assert read(live).setting == Setting(14)


def test_what_ansible_would_read_otherwise_is_not_sent(live, monkeypatch):
    # Merged, an empty policy takes nothing from the one of the group.
    monkeypatch.setenv("ANSIBLE_HASH_BEHAVIOUR", "merge")
    tiers = {"version": 1, "tiers": [{"max_batch": 4, "steps": "full"}, {"steps": 0}]}
    (live.inventory / "group_vars").mkdir()
    (live.inventory / "group_vars/all.yml").write_text(json.dumps({POLICY: tiers}))
    assert refused(live.fab("threshold", "12")).startswith(f"fab: {live.file} was put back as it was: for box, Ansible")
    assert live.sglang.changes == []
    assert not live.file.exists()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("16", "fab: box: the threshold 16 is not below the 16 requests that run at once, so speculation would"),
        ("300", "fab: box: the threshold 300 is not below the 256 requests that run at once, so speculation"),
    ],
)
def test_a_threshold_that_is_never_reached(live, number, said):
    assert refused(live.fab("threshold", number)).startswith(said)
    assert live.sglang.changes == []
    assert not live.file.exists()


def test_a_server_that_has_no_policy_to_change(without):
    assert without.fab("threshold").stdout.splitlines() == [
        "box:",
        f"  inventory  {ALWAYS}",
        "             the role's default: no variable is set",
        f"  live       {ALWAYS}",
    ]
    said = refused(without.fab("threshold", "12"))
    assert said == (
        "fab: box: the server was started without a threshold and a policy, so it takes none while it runs: write it "
        "into the inventory with --inventory-only, and deploy\n"
    )
    assert not without.file.exists()
    assert without.fab("threshold", "12", "--inventory-only").returncode == 0
    assert f"the server was started with 3 steps at any load (margin 2, dwell 16), the inventory asks for {TWELVE}" in (
        without.fab("threshold").stdout
    )


def test_always_is_no_change_for_a_server_without_a_policy(without):
    assert without.fab("threshold", "0").returncode == 0
    assert without.sglang.changes == []
    assert read(without).setting == Setting()


@pytest.mark.parametrize(
    ("tiers", "why"),
    [
        ([{"max_batch": 6, "steps": "full"}, {"steps": 0}], ""),
        ([{"steps": 3}], ""),
        (
            [{"max_batch": 6, "steps": 2}, {"max_batch": 9, "steps": 1}, {"steps": 0}],
            "the server was started for 3 steps and plain only, so it does not take 2 steps while it runs",
        ),
    ],
)
def test_draft_steps_that_a_server_was_not_started_for(policy, tiers, why):
    setting = Setting(policy={"version": 1, "tiers": tiers})
    assert threshold.deployed_only(setting, live_host.started(policy, 8).information()) == why


def test_what_the_inventory_says_is_shown_of_a_host_that_is_down(live):
    (live.inventory / ".known_hosts").unlink()
    done = live.fab("threshold")
    assert done.returncode == 2
    assert f"  inventory  {EIGHT}\n" in done.stdout
    assert "pins no host key" in done.stderr


def test_a_host_that_is_in_no_inventory(live):
    done = live.fab("threshold", "12", "-H", "127.0.0.2")
    assert (
        refused(done) == f"fab: 127.0.0.2 is not in {live.inventory}, so that no variables of it can be written there\n"
    )
    assert live.sglang.changes == []


@pytest.mark.parametrize(
    ("word", "forced", "after"),
    [
        ("on", 3, f"after   FORCED to 3 steps whatever the load, in place of {EIGHT}"),
        ("off", 0, f"after   FORCED to plain whatever the load, in place of {EIGHT}"),
        ("auto", None, f"after   {EIGHT}; now "),
    ],
)
def test_speculation_on_off_and_auto(live, word, forced, after):
    live.sglang.controller.apply(live.sglang.controller.plan({"speculative_force_steps": 0 if word != "off" else 3}))
    done = live.fab("speculation", word)
    assert (done.returncode, done.stderr) == (0, "")
    assert after in done.stdout
    assert live.sglang.controller.forced_steps == forced


def test_a_word_and_a_dry_run(live):
    done = live.fab("speculation", "off", "--dry-run")
    assert '{"server_args": {"speculative_force_steps": 0}}' in done.stdout
    assert live.sglang.changes == []


@pytest.mark.parametrize(
    ("word", "given", "said"),
    [
        ("many", [], "the threshold is 'many', not a number of requests"),
        ("12", ["--undo"], "12 and --undo exclude each other: one sets a threshold, the other puts one back"),
        ("12", ["--live-only", "--inventory-only"], "--live-only and --inventory-only exclude each other: together"),
        ("12", ["--live-only", "--force"], "--live-only and --force exclude each other: no file is written"),
        ("", ["--undo", "--live-only"], "--undo and --live-only exclude each other: it is the inventory's file that"),
        ("", ["--undo", "--force"], "--undo and --force exclude each other: what is there is kept"),
        ("", ["--live-only"], "--live-only is for a change: fab -H HOST threshold N --live-only"),
        ("", ["--dry-run"], "--dry-run is for a change: fab -H HOST threshold N --dry-run"),
    ],
)
def test_what_was_typed_wrongly(word, given, said):
    with pytest.raises(HostError) as caught:
        threshold.wanted(word, dict.fromkeys(given, True))
    assert str(caught.value).startswith(said)


def test_a_doctor_that_sees_nothing_says_so_to_scripts(live):
    (live.inventory / ".known_hosts").unlink()
    done = live.fab("doctor", "--json")
    assert (done.returncode, done.stderr) == (2, "")
    said = json.loads(done.stdout)
    (finding,) = said["findings"]
    assert (said["host"], said["exit"], finding["level"], finding["remedy"]) == ("box", 2, "problem", "")
    assert "pins no host key" in finding["what"]
    assert "pins no host key" in refused(live.fab("doctor"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verify"], "fab: 127.0.0.2 is in no inventory, which the verification needs: name one with --inventory\n"),
        (["rollback"], "fab: 127.0.0.2 is in no inventory, which playbooks/rollback.yml needs: name one with --invent"),
    ],
)
def test_what_needs_an_inventory(live, words, said):
    assert refused(live.fab(*words, "-H", "127.0.0.2")).startswith(said)


def test_a_host_that_cannot_be_reached_is_neither_verified_nor_rolled_back(live):
    (live.inventory / ".known_hosts").unlink()
    for task in ("verify", "rollback"):
        assert "pins no host key" in refused(live.fab(task))
