"""The CUDA toolkit on a host: refused, dry, interrupted, installed, proved, left alone the second time.

From wheels, and from a mirror whose packages have the names of NVIDIA's and what the wheels unpacked to.
"""

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from test_site import refusal

from blackwell import paths

NAME = "cuda-13.0-compiler"
LOCK = paths.ROOT / f"requirements/{NAME}.txt"
TREE = f"/opt/sglang/toolkits/{NAME}-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
HOME = f"{TREE}/nvidia/cu13"
ASKED = {
    "cuda_manage": True,
    "cuda_source": "wheels",
    "cuda_wheels": "compiler",
    "cuda_wheelhouse": str(paths.cache() / f"wheelhouse/{NAME}.tar"),
}
HALF = f"mkdir -p {TREE}/nvidia/cu13/bin /opt/sglang/toolkits/staging && touch {TREE}/nvidia/cu13/bin/nvcc"
"""As a run leaves it that was killed while pip was at work."""

ARCHIVE = "/srv/cuda-archive"
MAKE_ARCHIVE = "/root/make_cuda_archive.sh"
PACKAGE = "cuda-toolkit-13-0"
LEFT = (
    *("/opt/sglang/toolkits", ARCHIVE, MAKE_ARCHIVE),
    *("/etc/apt/apt.conf.d/52blackwell-nvidia", "/etc/apt/sources.list.d/blackwell-nvidia.sources"),
)
"""What the tests leave on the host, which others use after them."""


@pytest.fixture(scope="module")
def host(deployed):
    yield deployed
    deployed.ssh(f"rm -rf {' '.join(LEFT)}")


def test_what_cannot_work_is_refused_before_anything_changes(host):
    before = host.fingerprint()
    wrong = {"cuda_wheels": "all", "cuda_disk_mb": 10**9, "cuda_wheelhouse": "/no/such.tar"}
    said = refusal(host.play("--tags", "cuda", **ASKED | wrong))
    assert "value of cuda_wheels must be one of: compiler, libraries, got: all" in said
    assert "cuda_wheelhouse: /no/such.tar is not on the control machine" in said
    assert "MiB free, cuda_disk_mb asks for 1000000000: free some space, or put cuda_root" in said
    assert "3 to mend" in said
    assert host.fingerprint() == before


def test_where_nothing_asks_for_it_nothing_is_done(host):
    before = host.fingerprint()
    run = host.play("--tags", "cuda")
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert host.fingerprint() == before


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(host):
    before = host.fingerprint()
    run = host.play("--tags", "cuda", "--check", **ASKED)
    assert run.returncode == 0, run.output
    said = " ".join(run.output.split())
    assert "Installing g++ of the distribution" in said
    assert f"Unpacking {TREE} from " in said
    assert host.fingerprint() == before


def test_a_wheelhouse_of_another_lock_is_refused_and_nothing_of_it_stays(host, tmp_path):
    other = tmp_path / "other.tar"
    lock = tmp_path / "lock.txt"
    lock.write_text("# of another day\n")
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"{hashlib.sha256(lock.read_bytes()).hexdigest()}  lock.txt\n")
    with tarfile.open(other, "w") as archive:
        for file in (lock, sums):
            archive.add(file, file.name)
    run = host.play("--tags", "cuda", **ASKED | {"cuda_wheelhouse": str(other)})
    assert run.returncode != 0
    said = " ".join(run.output.split())
    assert f"{other} was not made from requirements/{NAME}.txt as it is now" in said
    assert f"{TREE} was not made, and what there was of it is removed" in said
    assert host.ssh("ls /opt/sglang/toolkits") == ""


def test_what_an_interrupted_run_left_is_made_again_and_compiles_for_the_cards(host):
    host.ssh(HALF)
    run = host.play("--tags", "cuda", **ASKED)
    assert run.returncode == 0, run.output
    record = host.record(f"{TREE}/toolkit.json")
    assert record["proof"] == {"version": "13.0.88", "target": "sm_120a", "linked": "libcudart.so.13"}
    assert host.ssh("ls /opt/sglang/toolkits") == TREE.rsplit("/", 1)[1]


def test_its_own_compiler_and_disassembler_say_the_same(host):
    source = "__global__ void fill(int *at) { at[threadIdx.x] = 7; }"
    host.ssh(f"mkdir -p /root/kernel && echo '{source}' >/root/kernel/one.cu")
    for architecture in ("sm_120a", "sm_90"):
        host.ssh(f"cd /root/kernel && {HOME}/bin/nvcc -arch={architecture} -cubin -o one.cubin one.cu")
        listing = host.ssh(f"{HOME}/bin/nvdisasm /root/kernel/one.cubin")
        assert f".target\t{architecture}\n" in listing
        assert "_Z4fillPi" in listing
    host.ssh("rm -r /root/kernel")


def test_a_second_run_changes_nothing(host):
    before = host.fingerprint()
    run = host.play("--tags", "cuda", **ASKED)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert host.fingerprint() == before


def test_the_verification_notices_a_toolkit_that_is_not_whole(host):
    asked = [word for name, value in ASKED.items() for word in ("-e", f"{name}={value}")]
    assert host.verify(*asked, "-k", "test_cuda").returncode == 0
    host.ssh(f"cd {HOME} && chmod o+w bin/nvcc && mv lib64 lib64.kept")
    run = host.verify(*asked, "-k", "test_cuda")
    host.ssh(f"cd {HOME} && chmod o-w bin/nvcc && mv lib64.kept lib64")
    assert run.returncode == 1, run.output
    for test in ("test_the_service_cannot_change_it", "test_it_compiles_a_kernel_for_the_cards_as_the_services_user"):
        assert re.search(rf"(FAILED|ERROR) tests/verify/test_cuda.py::{test}", run.output)


def test_a_host_that_asks_for_no_toolkit_is_told_why_it_was_not_looked_at(host):
    run = host.verify("-k", "test_cuda")
    assert "neither cuda_manage nor cuda_home asks for a CUDA toolkit on this host" in run.output


@pytest.fixture(scope="module")
def mirrored(host, tmp_path_factory):
    """Variables that ask for the packages of a mirror, which is a directory of the host."""
    home = tmp_path_factory.mktemp("gpg")
    home.chmod(0o700)

    def gpg(*words, **options):
        command = ["gpg", f"--homedir={home}", "--batch", "--quiet", *words]
        return subprocess.run(command, check=True, capture_output=True, **options).stdout

    gpg("--passphrase=", "--quick-generate-key", "cuda@localhost", "ed25519", "sign", "never")
    host.write(MAKE_ARCHIVE, Path(__file__).with_name("make_cuda_archive.sh").read_bytes())
    release = host.ssh(f"bash {MAKE_ARCHIVE} {ARCHIVE} {HOME}") + "\n"
    host.write(f"{ARCHIVE}/InRelease", gpg("--clearsign", input=release.encode()))
    key = home / "key.asc"
    key.write_bytes(gpg("--armor", "--export"))
    subprocess.run(["gpgconf", f"--homedir={home}", "--kill", "all"], check=True)
    return {
        "cuda_manage": True,
        "cuda_source": "mirror",
        "cuda_mirror": f"file:{ARCHIVE}",
        "cuda_mirror_key": str(key),
        "cuda_package_version": "13.0.2-1",
        "cuda_disk_mb": 500,
    }


def installed(host) -> str:
    return host.ssh("dpkg-query -Wf '${db:Status-Abbrev}${Package} ${Version}\\n' 'cuda-*' 2>/dev/null || :")


@pytest.mark.long
def test_a_version_that_brings_a_driver_is_not_installed(host, mirrored):
    run = host.play("--tags", "cuda", **mirrored | {"cuda_package_version": ""})
    assert run.returncode != 0
    said = " ".join(run.output.split())
    assert (
        "the toolkit was not installed. apt would install cuda-drivers, which is the driver's or the kernel's" in said
    )
    assert installed(host) == ""


@pytest.mark.long
def test_the_version_that_is_asked_for_is_installed_held_and_compiles_for_the_cards(host, mirrored):
    run = host.play("--tags", "cuda", **mirrored)
    assert run.returncode == 0, run.output
    assert installed(host) == f"hi {PACKAGE} 13.0.2-1"
    assert PACKAGE not in host.ssh("apt-get --simulate dist-upgrade | grep ^Inst || :")
    asked = [word for name, value in mirrored.items() for word in ("-e", f"{name}={value}")]
    assert host.verify(*asked, "-k", "test_cuda").returncode == 0


@pytest.mark.long
def test_packages_that_are_there_are_left_alone(host, mirrored):
    before = host.fingerprint()
    run = host.play("--tags", "cuda", **mirrored)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert host.fingerprint() == before


@pytest.mark.long
def test_they_go_as_the_documentation_says(host):
    host.ssh(f"apt-mark unhold {PACKAGE} && apt-get --yes autoremove --purge {PACKAGE}")
    assert installed(host) == ""
    assert host.ssh("ls -d /usr/local/cuda* 2>/dev/null || :") == ""
