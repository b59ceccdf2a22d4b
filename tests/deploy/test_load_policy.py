"""Speculation that follows the load: deployed, verified, forced and let go; and a release that is not whole."""

import json
import shutil
import tarfile
import zipfile

import pytest
from target import BIN

from blackwell import paths

PATCHES = paths.ROOT / "patches" / "sglang-0.5.9"
MANIFEST = json.loads((PATCHES / "manifest.json").read_text(encoding="utf-8"))
if not MANIFEST["patches"]:
    pytest.skip(f"{PATCHES.name}/series is empty: no server follows its load yet", allow_module_level=True)

SERVER_ARGS = "sglang/srt/server_args.py"
STAGES = ("--tags", "sglang,model,serve")
THRESHOLD = {"sglang_server_speculative_disable_batch_threshold": 4}
WORDS = "3 steps up to 4 requests, plain above (margin 2, dwell 16)"
POLICY = {
    "sglang_server_speculative_load_policy": {
        "version": 1,
        "tiers": [{"max_batch": 2, "steps": "full"}, {"max_batch": 5, "steps": 1}, {"steps": 0}],
        "dwell": 4,
    }
}
TIERS = "3 steps up to 2 requests, 1 step up to 5, plain above (margin 1, dwell 4)"


def verified(target, variables, *arguments):
    return target.verify("-e", json.dumps(variables), *arguments)


def shown(target):
    """The line of ``fab speculation`` without options."""
    run = target.fab("speculation")
    assert run.returncode == 0, run.output
    return run.output.removeprefix(f"{target.host}: ").strip()


@pytest.fixture(scope="module")
def by_load(deployed):
    """The host with a threshold; afterwards as its inventory asks for it."""
    run = deployed.play(*STAGES, **THRESHOLD)
    assert run.returncode == 0, run.output
    yield deployed
    run = deployed.play(*STAGES)
    assert run.returncode == 0, run.output


def test_a_threshold_is_deployed_as_asked_for(by_load):
    run = verified(by_load, THRESHOLD)
    assert run.returncode == 0, run.output
    assert shown(by_load).startswith(f"{WORDS}; now ")


def test_the_second_run_changes_nothing(by_load):
    run = by_load.play(*STAGES, **THRESHOLD)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output


def test_another_threshold_is_noticed(by_load):
    run = verified(by_load, {"sglang_server_speculative_disable_batch_threshold": 3}, "-k", "follows_the_load")
    assert run.returncode == 1, run.output
    assert f"{by_load.host} speculates by {WORDS}, asked for is 3 steps up to 3 requests" in run.output


def test_a_dry_run_sends_nothing(by_load):
    run = by_load.fab("speculation", "--force", "off", "--dry-run")
    assert run.returncode == 0, run.output
    assert 'POST /set_internal_state {"server_args": {"speculative_force_steps": 0}}' in run.output
    assert shown(by_load).startswith(WORDS)


def test_forced_and_let_go(by_load):
    run = by_load.fab("speculation", "--force", "off")
    assert run.returncode == 0, run.output
    assert f"before  {WORDS}" in run.output
    assert "after   FORCED to plain" in run.output
    assert "A restart of the service returns to the deployed policy." in run.output
    assert by_load.generates()
    assert "FORCED to plain" in by_load.fab("status").output
    run = verified(by_load, THRESHOLD, "-k", "follows_the_load")
    assert run.returncode == 1, run.output
    assert f"fab -H {by_load.host} speculation --release" in run.output
    run = by_load.fab("speculation", "--release")
    assert run.returncode == 0, run.output
    assert verified(by_load, THRESHOLD, "-k", "follows_the_load").returncode == 0


def test_on_off_and_auto_are_words_for_it(by_load):
    run = by_load.fab("speculation", "off")
    assert run.returncode == 0, run.output
    assert "after   FORCED to plain" in run.output
    found = by_load.fab("doctor")
    assert found.returncode == 1, found.output
    assert f"FORCED to plain whatever the load\n           -> fab -H {by_load.host} speculation auto\n" in found.output
    assert "after   FORCED to 3 steps" in by_load.fab("speculation", "on").output
    assert by_load.fab("speculation", "auto").returncode == 0
    assert verified(by_load, THRESHOLD, "-k", "follows_the_load").returncode == 0


def test_the_server_says_why_it_does_not_take_a_number_of_steps(by_load):
    run = by_load.fab("speculation", "--force", "9")
    assert run.returncode == 2, run.output
    assert f"fab: {by_load.host}: nothing was changed, the server answered 400: " in run.output
    assert shown(by_load).startswith(WORDS)


def test_what_was_changed_while_it_ran_is_noticed_and_gone_after_a_restart(by_load):
    run = by_load.fab("speculation", "--threshold", "2")
    assert run.returncode == 0, run.output
    run = verified(by_load, THRESHOLD, "-k", "follows_the_load")
    assert run.returncode == 1, run.output
    assert "it was changed while the server ran, and systemctl restart sglang returns" in run.output
    by_load.ssh("systemctl restart sglang")
    assert verified(by_load, THRESHOLD).returncode == 0


def stock(name, target):
    """Writes a file of the stock package as the wheelhouse has it."""
    with tarfile.open(paths.cache() / "wheelhouse" / "sglang-0.5.9-cpu.tar") as archive:
        (member,) = [member for member in archive if member.name.endswith(MANIFEST["base"]["wheel"])]
        with zipfile.ZipFile(archive.extractfile(member)) as wheel:
            target.write_bytes(wheel.read(name))
    return target


def test_a_patched_file_that_is_stock_again_is_named(by_load, tmp_path):
    file = f"{by_load.ssh('readlink /opt/sglang/current')}/src/{SERVER_ARGS}"
    by_load.ssh(f"cp --preserve=all {file} /root/server_args.kept")
    words = f"src={stock(SERVER_ARGS, tmp_path / 'server_args.py')} dest={file} mode=preserve"
    run = by_load.command(
        BIN / "ansible", by_load.host, "-i", by_load.inventory, "-m", "ansible.builtin.copy", "-a", words
    )
    found = verified(by_load, THRESHOLD, "-k", "every_file or patch_series_adds")
    by_load.ssh(f"mv /root/server_args.kept {file}")
    assert run.returncode == 0, run.output
    assert found.returncode == 1, found.output
    assert f"{SERVER_ARGS} differs from the patch series" in found.output
    assert f"--speculative-disable-batch-threshold is no argument of add_cli_args in {file}" in found.output
    assert verified(by_load, THRESHOLD, "-k", "every_file or patch_series_adds").returncode == 0


@pytest.mark.long
def test_a_policy_comes_and_goes_with_its_deployment(by_load):
    run = by_load.play(*STAGES, **POLICY)
    assert run.returncode == 0, run.output
    assert verified(by_load, POLICY).returncode == 0
    assert shown(by_load).startswith(f"{TIERS}; now ")
    run = by_load.play(*STAGES, **POLICY)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    run = by_load.play(playbook="playbooks/rollback.yml")
    assert run.returncode == 0, run.output
    assert verified(by_load, THRESHOLD).returncode == 0
    assert shown(by_load).startswith(f"{WORDS}; now ")


@pytest.fixture
def file(by_load):
    """The host's own file of the inventory, which is not there before and after."""
    directory = by_load.inventory / "host_vars" / by_load.host
    shutil.rmtree(directory, ignore_errors=True)
    yield directory / "speculation.yml"
    shutil.rmtree(directory)


THREE = "3 steps up to 3 requests, plain above (margin 2, dwell 16)"


def test_a_threshold_that_was_typed_is_live_kept_and_rolled_back(by_load, file):
    pid = by_load.ready["pid"]
    run = by_load.fab("threshold", "3")
    assert run.returncode == 0, run.output
    assert f"after   {THREE}" in run.output
    assert f"kept    in {file}" in run.output
    assert by_load.ready["pid"] == pid
    assert "which is live already" in by_load.fab("threshold").output
    # No variable on the command line: the inventory says it.
    run = by_load.play(*STAGES)
    assert run.returncode == 0, run.output
    run = by_load.fab("verify")
    assert run.returncode == 0, run.output
    assert " passed" in run.output
    screen = by_load.fab("threshold").output
    assert f"  live       {THREE}" in screen
    assert "remark" not in screen

    good, previous = (
        by_load.record(f"/var/lib/sglang/deployments/{name}/deployment.json") for name in ("good", "previous")
    )
    way = f"  from  {good['deployment']} (release {good['release']})\n  to    {previous['deployment']} (release "
    run = by_load.fab("rollback", "--dry-run")
    assert (run.returncode, way in run.output) == (0, True), run.output
    run = by_load.fab("rollback")
    assert run.returncode == 2, run.output
    assert f"fab: {by_load.host}: there is no terminal to ask on whether to roll back: --yes says so" in run.output
    assert by_load.ready["deployment"] == good["deployment"]
    run = by_load.fab("rollback", "--yes")
    assert run.returncode == 0, run.output
    assert "PLAY RECAP" in run.output
    assert by_load.ready["deployment"] == previous["deployment"]
    assert shown(by_load).startswith(f"{WORDS}; now ")
    run = by_load.fab("verify")
    assert run.returncode == 1, run.output
    assert f"{by_load.host} speculates by {WORDS}, asked for is {THREE}" in run.output

    run = by_load.fab("threshold", "--undo")
    assert run.returncode == 0, run.output
    assert not file.exists()
    assert shown(by_load).startswith("3 steps at any load")
