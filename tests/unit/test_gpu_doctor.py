"""What the doctor of the GPUs says of a machine of eight cards, of a container on it, and of all that can be wrong."""

import copy
import json
import os
import subprocess
import sys

import gpu_machine
import pytest

from blackwell import paths

CARD = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
PROGRAM = paths.ROOT / "scripts/doctor"
NCCL = "/opt/sglang/releases/r1/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch NVML library version: 580.126"


@pytest.fixture(scope="module")
def doctor(load):
    return load("roles/preflight/files/gpu_doctor.py")


def run(machine, *arguments):
    environment = os.environ | {"PATH": str(machine.programs)}
    words = [sys.executable, "-I", PROGRAM, f"--root={machine.root}", *arguments]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def recorded(machine):
    done = run(machine, "--record")
    assert done.returncode == 0, done.stderr
    # Which user runs the tests is no fact of the machine.
    return json.loads(done.stdout) | {"administrator": True}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return recorded(gpu_machine.bare(tmp_path_factory.mktemp("bare")))


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    return recorded(gpu_machine.container(tmp_path_factory.mktemp("container")))


ALL = tuple(range(8))


def set_cards(facts, only=ALL, **values):
    """Other values of fields of some cards, where __ stands for the dot of a field's name."""
    fields = "index uuid name pci.bus_id compute_cap mig.mode.current mig.mode.pending pstate pcie.link.gen.current"
    fields = f"{fields} pcie.link.gen.max pcie.link.gen.gpumax power.limit power.default_limit ecc.mode.current"
    fields = f"{fields} ecc.errors.uncorrected.volatile.total memory.used".split()
    rows = [line.split(", ") for line in facts["cards"]["text"].splitlines()]
    for number in only:
        for name, value in values.items():
            rows[number][fields.index(name.replace("__", "."))] = value
    facts["cards"] = {"text": "".join(f"{', '.join(row)}\n" for row in rows)}


def set_clocks(facts, reasons):
    """What holds down the clocks, by card; those that are idle for the rest."""
    facts["clocks"] = {"text": "".join(f"{number}, {reasons.get(number, 1):#018x}\n" for number in ALL)}


def drop_card(facts, number):
    rows = facts["cards"]["text"].splitlines()
    facts["cards"] = {"text": "\n".join(rows[:number] + rows[number + 1 :])}


def no_driver(facts):
    facts.update(driver="", cards=None, processes=None, p2p=None, libraries={}, installed={"error": "not found"})
    facts["modules"] = []


def old_driver(facts):
    older = "570.133.20"
    facts["driver"] = facts["driver"].replace(gpu_machine.DRIVER, older)
    facts["libraries"] = dict.fromkeys(facts["libraries"], older)
    facts["installed"] = {"text": f"{older}\n"}


def proprietary(facts):
    facts["driver"] = gpu_machine.recording("version-proprietary.txt")


def upgraded(facts):
    facts["libraries"] = dict.fromkeys(facts["libraries"], "580.126.09")
    facts["installed"] = {"text": "580.126.09\n"}
    facts["cards"] = {"error": MISMATCH}


def key(facts, said):
    no_driver(facts)
    facts["keys"] = {"/var/lib/dkms/mok.pub": {"text": f"/var/lib/dkms/mok.pub is {said} enrolled\n"}}


def no_mokutil(facts):
    no_driver(facts)
    facts["keys"] = {"/var/lib/dkms/mok.pub": None}


def no_key(facts):
    no_driver(facts)
    facts["keys"] = {}


def unplug(facts):
    facts["pci"] = facts["pci"][:6]
    facts["cards"] = {"text": "\n".join(facts["cards"]["text"].splitlines()[:6])}


def translate(facts):
    facts["pci"] = [device | {"iommu": "DMA-FQ"} for device in facts["pci"]]
    facts["cmdline"] = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-40-amd64 ro amd_iommu=on quiet"


def redirect(facts):
    text = facts["lspci"]["text"]
    off = "SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-"
    facts["lspci"] = {"text": text.replace(off, "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+", 1)}


def valid_only(facts):
    facts["lspci"] = {"text": facts["lspci"]["text"].replace("SrcValid-", "SrcValid+")}


def pairs(facts, code):
    facts["p2p"] = {"text": facts["p2p"]["text"].replace("GPU1\tOK", f"GPU1\t{code}", 1)}


def lanes(facts):
    facts["pci"][2]["current_link_width"] = "8"


def process(facts, group="0::/user.slice/user-0.slice/session-1.scope\n"):
    uuid = facts["cards"]["text"].splitlines()[1].split(", ")[1]
    facts["processes"] = {"text": f"{uuid}, 4242, 90112, /usr/bin/python3\n"}
    facts["groups"] = {"4242": group}
    set_cards(facts, [1], memory__used="90116")


def nccl(facts, version, *, loaded):
    facts["nccl"] = [{"path": NCCL, "loaded": loaded, "version": version}]


WRONG = {
    "no driver": (
        no_driver,
        ("driver", "problem"),
        "8 NVIDIA GPUs are on the PCI bus, and no NVIDIA driver is loaded",
        "install the driver with open kernel modules (nvidia-open), 580 or newer",
    ),
    "driver too old": (
        old_driver,
        ("driver", "problem"),
        "the loaded driver is 570.133.20, older than 580",
        "install nvidia-open, 580 or newer, and reboot",
    ),
    "proprietary modules": (
        proprietary,
        ("driver", "problem"),
        "the loaded driver has the proprietary kernel modules, which do not drive Blackwell",
        "install nvidia-open in its place, and reboot",
    ),
    "driver upgraded and not rebooted": (
        upgraded,
        ("driver", "problem"),
        """driver 580.105.08 is loaded, but libcuda.so.1 is 580.126.09, libnvidia-ml.so.1 is 580.126.09 and the kernel
        module on disk is 580.126.09""",
        "reboot, and keep the driver's packages from unattended upgrades",
    ),
    "no nvidia-smi": (
        lambda facts: facts.update(cards=None, processes=None, p2p=None),
        ("driver", "problem"),
        "nvidia-smi is not installed",
        "install the driver's utilities of version 580.105.08",
    ),
    "nvidia-smi fails": (
        lambda facts: facts.update(cards={"error": "Unable to determine the device handle for GPU0: GPU is lost"}),
        ("driver", "problem"),
        "nvidia-smi does not show the GPUs: Unable to determine the device handle for GPU0: GPU is lost",
        "see dmesg | grep -i nvrm",
    ),
    "nvidia-smi in another form": (
        lambda facts: facts.update(cards={"text": "0, A\n"}),
        ("driver", "problem"),
        "nvidia-smi answered in another form",
        "see nvidia-smi --help-query-gpu for the fields of this driver",
    ),
    "a card that does not answer": (
        lambda facts: drop_card(facts, 4),
        ("count", "problem"),
        "7 GPUs answer, 8 are wanted, and 0000:41:00.0 on the PCI bus does not",
        "see dmesg | grep -i nvrm for its Xid, and power-cycle the machine",
    ),
    "two cards missing": (
        unplug,
        ("count", "problem"),
        "6 GPUs are on the PCI bus, 8 are wanted",
        "seat the cards and their power, see the firmware (Above 4G Decoding, bifurcation), or ask for fewer",
    ),
    "other cards": (
        lambda facts: set_cards(facts, [0, 3], name="NVIDIA L40S", compute_cap="8.9"),
        ("capability", "problem"),
        "GPU 0 and 3 is of NVIDIA L40S, compute capability 8.9, below 12.0",
        "use cards of capability 12.0 or above",
    ),
    "MIG": (
        lambda facts: set_cards(facts, [2, 5], mig__mode__current="Enabled"),
        ("mig", "problem"),
        "MIG is on for GPU 2 and 5",
        "nvidia-smi -i 2,5 -mig 0, and reset or reboot",
    ),
    "MIG from the next reset on": (
        lambda facts: set_cards(facts, [7], mig__mode__pending="Enabled"),
        ("mig", "problem"),
        "MIG is on for GPU 7",
        "nvidia-smi -i 7 -mig 0, and reset or reboot",
    ),
    "nouveau": (
        lambda facts: facts["modules"].append("nouveau"),
        ("nouveau", "problem"),
        "the kernel module nouveau is loaded, which keeps the cards from the NVIDIA driver",
        "write 'blacklist nouveau' into /etc/modprobe.d/nouveau.conf, run update-initramfs -u, and reboot",
    ),
    "fabric manager": (
        lambda facts: facts.update(fabric_manager=["/usr/bin/nv-fabricmanager"]),
        ("fabric_manager", "problem"),
        "the fabric manager is installed (/usr/bin/nv-fabricmanager), and there is no NVSwitch",
        "apt-get purge 'nvidia-fabricmanager*'",
    ),
    "IOMMU": (
        translate,
        ("iommu", "warning"),
        "the IOMMU translates what the GPUs send (type DMA-FQ; kernel command line: amd_iommu=on)",
        "start the kernel with iommu=pt, or switch the IOMMU off in the firmware: collectives can hang otherwise",
    ),
    "ACS": (
        redirect,
        ("acs", "warning"),
        "ACS of the bridges above the GPUs redirects what they send each other: 0000:00:01.1",
        "switch ACS off in the firmware, or until the next boot: setpci -s 0000:00:01.1 ECAP_ACS+6.w=0000",
    ),
    "no lspci": (
        lambda facts: facts.update(lspci=None),
        ("acs", "warning"),
        "ACS of the PCI bridges could not be read: lspci is not installed",
        "apt-get install pciutils",
    ),
    "not root": (
        lambda facts: facts.update(administrator=False),
        ("acs", "warning"),
        "ACS of the PCI bridges is shown to root only",
        "run this as root",
    ),
    "no peer-to-peer": (
        lambda facts: pairs(facts, "CNS"),
        ("p2p", "warning"),
        "GPUs cannot read each other's memory (1-0): the chipset does not support it (CNS)",
        "put the cards below one root complex or switch, and see the firmware",
    ),
    "no peer-to-peer by a registry key": (
        lambda facts: facts.update(p2p={"text": facts["p2p"]["text"].replace("OK\t", "DR\t")}),
        ("p2p", "warning"),
        """GPUs cannot read each other's memory (0-1, 0-2, 0-3, 0-4 and 52 more): it is switched off by a registry key
        (DR)""",
        "remove NVreg_RegistryDwords from /etc/modprobe.d, and reboot",
    ),
    "half the lanes": (
        lanes,
        ("link", "warning"),
        "GPU 2 has a PCIe link of 8 lanes, the card can do 16",
        "seat the card, and see riser, slot and the firmware's settings of that slot",
    ),
    "a slot of another generation": (
        lambda facts: set_cards(facts, [0, 1], pcie__link__gen__max="4"),
        ("link", "warning"),
        "GPU 0 and 1 has a PCIe link of generation 4, the card can do 5",
        "seat the card, and see riser, slot and the firmware's settings of that slot",
    ),
    "a slow link under load": (
        lambda facts: set_cards(facts, [6], pstate="P0", pcie__link__gen__current="3"),
        ("link", "warning"),
        "GPU 6 has a PCIe link of generation 3, the card can do 5",
        "seat the card, and see riser, slot and the firmware's settings of that slot",
    ),
    "capped power": (
        lambda facts: set_cards(facts, [0, 1, 2], power__limit="450.00"),
        ("power", "warning"),
        "the power of GPU 0, 1 and 2 is capped at 450 W, its default is 600 W",
        "nvidia-smi -i 0,1,2 -pl 600, and look for what lowered it",
    ),
    "clocks held down": (
        lambda facts: set_clocks(facts, {1: 0x48, 2: 0x04, 6: 0x48}),
        ("clocks", "warning"),
        "GPU 1 and 6 runs at lower clocks: hardware slowdown, too hot, by the hardware",
        "see nvidia-smi -q -d PERFORMANCE,TEMPERATURE, and the fans",
    ),
    "power brake": (
        lambda facts: set_clocks(facts, {7: 0x80}),
        ("clocks", "warning"),
        "GPU 7 runs at lower clocks: power brake of the power supply",
        "see nvidia-smi -q -d PERFORMANCE,TEMPERATURE, and the fans",
    ),
    "ECC off": (
        lambda facts: set_cards(facts, [3], ecc__mode__current="Disabled"),
        ("ecc", "warning"),
        "ECC is off for GPU 3",
        "nvidia-smi -i 3 -e 1, and reboot",
    ),
    "memory errors": (
        lambda facts: set_cards(facts, [3], ecc__errors__uncorrected__volatile__total="2"),
        ("memory_errors", "problem"),
        "GPU 3 has had 2 uncorrected memory errors since the driver was loaded",
        "see nvidia-smi -q -d ECC,ROW_REMAPPER; reset the card, and replace it if they come back",
    ),
    "a process": (
        process,
        ("processes", "problem"),
        "process 4242 (/usr/bin/python3) holds 90112 MiB of GPU 1, and is not of the service",
        "see ps -fp 4242, and stop it",
    ),
    "memory that nobody holds": (
        lambda facts: set_cards(facts, [5], memory__used="80000"),
        ("processes", "problem"),
        "80000 MiB of GPU 5 are held, and no process shows that holds them",
        "see fuser -v /dev/nvidia5, in every container; if it shows none, reset the card",
    ),
    "NCCL in the release": (
        lambda facts: nccl(facts, "2.26.2", loaded=False),
        ("nccl", "problem"),
        f"NCCL 2.26.2 is what the release would load ({NCCL}), which crashes on these cards",
        "build the release with another version of nvidia-nccl",
    ),
    "NCCL loaded": (
        lambda facts: nccl(facts, "2.26.2", loaded=True),
        ("nccl", "problem"),
        f"NCCL 2.26.2 is loaded ({NCCL}), which crashes on these cards",
        "build the release with another version of nvidia-nccl",
    ),
}
CONTAINED = {
    "other libraries than the driver of the host": (
        lambda facts: facts.update(libraries={"libcuda.so.1": "580.126.09"}),
        "driver 580.105.08 is loaded, but libcuda.so.1 is 580.126.09",
        "install the driver's libraries of exactly 580.105.08 in the container, without its kernel modules",
    ),
    "no driver on the host": (
        no_driver,
        "8 NVIDIA GPUs are on the PCI bus, and no NVIDIA driver is loaded",
        "on the host of the container: install the driver with open kernel modules (nvidia-open), 580 or newer",
    ),
    "nodes": (
        lambda facts: facts.update(nodes=[name for name in facts["nodes"] if name not in ("nvidia-uvm", "nvidia7")]),
        "the container lacks /dev/nvidia-uvm and /dev/nvidia7",
        "on the host of the container: pass them on, and have nvidia-modprobe -u -c=0 make them at boot",
    ),
    "memlock": (
        lambda facts: facts.update(limits=gpu_machine.recording("limits-host.txt")),
        "at most 8388608 bytes of memory can be locked in the container",
        "on the host of the container: set lxc.prlimit.memlock = unlimited in the configuration of the container",
    ),
    "cards that were not passed on": (
        lambda facts: drop_card(facts, 7),
        "7 GPUs answer, 8 are wanted, and 0000:71:00.0 on the PCI bus does not",
        "on the host of the container: pass /dev/nvidia* of every card to the container, and see dmesg | grep -i nvrm",
    ),
}
SECURE_BOOT = {
    "key not enrolled": (
        lambda facts: key(facts, "not"),
        "is not known to be enrolled",
        "",
    ),
    "no mokutil": (
        no_mokutil,
        "is not known to be enrolled",
        "apt-get install dkms mokutil, ",
    ),
    "no key": (
        no_key,
        "is not there yet",
        "apt-get install dkms mokutil, ",
    ),
}
NOTHING = {
    "a driver of the service": lambda facts: process(facts, "0::/system.slice/sglang.service\n"),
    "a process below the service": lambda facts: process(facts, "0::/system.slice/sglang.service/inner\n"),
    "a card that idles": lambda facts: set_cards(facts, pstate="P8", pcie__link__gen__current="1"),
    "SrcValid+ alone": valid_only,
    "a driver that is loaded, whatever its key": lambda facts: facts.update(
        keys={"/var/lib/dkms/mok.pub": {"text": "/var/lib/dkms/mok.pub is not enrolled\n"}}
    ),
    "a low limit of a machine with users of its own that is no container": lambda facts: facts.update(
        namespace=["0", "100000", "65536"]
    ),
    "no nodes yet where the driver makes them": lambda facts: facts.update(nodes=[]),
    "a low limit of a container that may raise it": lambda facts: facts.update(container="lxc"),
    "fields that the card does not have": lambda facts: set_cards(
        facts, mig__mode__current="[N/A]", mig__mode__pending="[N/A]", ecc__mode__current="[N/A]", power__limit="[N/A]"
    ),
    "clocks that the driver does not tell": lambda facts: facts.update(
        clocks={"error": 'Field "clocks_event_reasons.active" is not a valid field to query.'}
    ),
    "clocks of an older recording": lambda facts: facts.pop("clocks"),
    "another NCCL": lambda facts: nccl(facts, "2.28.3", loaded=True),
    "fabric manager of a machine that has a switch": lambda facts: facts.update(
        fabric_manager=["/usr/bin/nv-fabricmanager"], pci=[*facts["pci"], {**facts["pci"][0], "class": "0x068000"}]
    ),
    "one translated card alone": lambda facts: facts.update(
        cards={"text": facts["cards"]["text"].splitlines()[0]}, pci=[facts["pci"][0] | {"iommu": "DMA"}]
    ),
}


def found(doctor, facts, change, **wanted):
    """What is wrong with a machine after a change, as it would be of eight cards wanted."""
    changed = copy.deepcopy(facts)
    change(changed)
    judged = doctor.judge(changed, doctor.Wanted(**({"gpus": 8} | wanted)))
    return [finding for finding in judged if finding.level != "ok"]


@pytest.mark.parametrize("case", WRONG)
def test_wrong(doctor, bare, case):
    change, (name, level), what, remedy = WRONG[case]
    assert found(doctor, bare, change) == [doctor.Finding(name, level, " ".join(what.split()), remedy)]


@pytest.mark.parametrize("case", CONTAINED)
def test_wrong_in_a_container(doctor, container, case):
    change, what, remedy = CONTAINED[case]
    assert [(finding.what, finding.remedy) for finding in found(doctor, container, change)] == [(what, remedy)]


@pytest.mark.parametrize("case", SECURE_BOOT)
def test_secure_boot_before_the_driver_is_there(doctor, bare, case):
    change, how, first = SECURE_BOOT[case]
    (finding,) = found(doctor, bare, change)[1:]
    assert (finding.name, finding.level) == ("secure_boot", "problem")
    key = "/var/lib/dkms/mok.pub"
    assert finding.what == f"Secure Boot is on, and the key {key}, with which DKMS signs the driver's modules, {how}"
    assert finding.remedy.startswith(f"{first}mokutil --import {key}, reboot, and choose Enroll MOK at the console")


@pytest.mark.parametrize(
    ("nodes", "missing"),
    [([], "/dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0"), (["nvidia-uvm", "nvidiactl"], "/dev/nvidia0")],
)
def test_what_a_container_lacks_before_it_has_a_driver(doctor, container, nodes, missing):
    def change(facts):
        facts.update(cards=None, p2p=None, libraries={}, nodes=nodes)

    (finding,) = found(doctor, container, change, skipped=("driver",))
    assert finding.what == f"the container lacks {missing}"


def test_a_container_may_have_any_card_of_its_host(doctor, container):
    def change(facts):
        facts.update(nodes=["nvidia-uvm", "nvidiactl", "nvidia3"], cards=None, p2p=None, libraries={})

    assert found(doctor, container, change, skipped=("driver",)) == []


@pytest.mark.parametrize("case", WRONG)
def test_what_is_skipped_is_not_said(doctor, bare, case):
    change, (name, _), *_ = WRONG[case]
    assert found(doctor, bare, change, skipped=(name,)) == []


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_wrong(doctor, bare, case):
    assert found(doctor, bare, NOTHING[case], gpus=1) == []


def test_every_check_has_a_case(doctor):
    cases = {names[0] for _, names, *_ in WRONG.values()} | {"memlock", "nodes", "secure_boot"}
    assert cases == set(doctor.CHECKS)


def test_all_reasons_at_once_and_what_refuses_first(doctor, bare):
    changes = [change for change, (name, _), *_ in WRONG.values() if name in ("power", "mig", "nouveau", "iommu")]
    together = found(doctor, bare, lambda facts: [change(facts) for change in changes])
    assert [finding.name for finding in together] == ["mig", "nouveau", "iommu", "power"]


def test_problems_come_before_warnings(doctor, bare):
    together = found(doctor, bare, lambda facts: [translate(facts), process(facts)])
    assert [(finding.name, finding.level) for finding in together] == [("processes", "problem"), ("iommu", "warning")]


def test_what_only_warns_is_a_matter_of_choice(doctor, bare):
    levels = [found(doctor, bare, translate, warnings=chosen)[0].level for chosen in ((), ("iommu",))]
    assert levels == ["problem", "warning"]


def test_the_machine_is_well(tmp_path):
    done = run(gpu_machine.bare(tmp_path), "--gpus=8", "--warn=")
    told = "ACS of the PCI bridges is shown to root only" if os.geteuid() else "all is well"
    assert told in done.stdout
    assert f"ok       8 x {CARD}, driver 580.105.08" in done.stdout
    assert done.returncode == int(os.geteuid() != 0), done.stdout + done.stderr


def test_the_container_is_well(tmp_path):
    done = run(gpu_machine.container(tmp_path), "--gpus=8", "--warn=", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["exit"]) == (0, 0), done.stdout + done.stderr
    assert [finding["what"] for finding in told["findings"]] == [
        f"8 x {CARD}, driver 580.105.08",
        "ACS is not shown in a container: run this on its host",
    ]


def test_a_host_without_a_gpu_gets_one_sentence(tmp_path):
    done = run(gpu_machine.Machine(tmp_path), "--gpus=8")
    _, what, remedy = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert what.strip() == "problem  there is no NVIDIA GPU on the PCI bus, 8 are wanted"
    assert remedy.strip() == "-> use a host with GPUs, or pass them to this one"


def test_a_container_with_two_other_cards_that_was_recorded(doctor):
    facts = json.loads(gpu_machine.recording("h200-x2.json"))
    problem, *well = doctor.judge(facts, doctor.Wanted(2))
    assert problem.what == "GPU 0 and 1 is of NVIDIA H200, compute capability 9.0, below 12.0"
    assert [finding.what for finding in well] == [
        "2 x NVIDIA H200, driver 580.159.04",
        "ACS is not shown in a container: run this on its host",
    ]
    assert found(doctor, facts, lambda _: None, gpus=2, capability="9.0") == []


def test_what_was_recorded_is_judged_elsewhere(tmp_path, bare):
    changed = copy.deepcopy(bare)
    set_cards(changed, mig__mode__current="Enabled")
    (tmp_path / "facts.json").write_text(json.dumps(changed))
    done = run(gpu_machine.Machine(tmp_path), f"--facts={tmp_path / 'facts.json'}")
    assert done.returncode == 1
    assert "MIG is on for GPU 0, 1, 2, 3, 4, 5, 6 and 7" in done.stdout


def test_an_error_of_a_program_is_told_in_its_words(tmp_path):
    machine = gpu_machine.bare(tmp_path)
    (machine.programs / "nvidia-smi").write_text(f"#!/bin/sh\necho '{MISMATCH}'\nexit 18\n")
    assert recorded(machine)["cards"] == {"error": MISMATCH}
    assert f"nvidia-smi does not show the GPUs: {MISMATCH}" in run(machine).stdout


def test_an_enrolled_key_is_an_answer_although_mokutil_exits_with_1(tmp_path):
    machine = gpu_machine.bare(tmp_path)
    said = "/var/lib/dkms/mok.pub is already enrolled"
    (machine.programs / "mokutil").write_text(f"#!/bin/sh\necho {said}\nexit 1\n")
    assert recorded(machine)["keys"] == {"/var/lib/dkms/mok.pub": {"text": f"{said}\n"}}


def test_nccl_that_a_process_of_the_service_has_loaded(tmp_path):
    machine = gpu_machine.bare(tmp_path)
    machine.write(NCCL.lstrip("/"), b"\x7fELF\0NCCL version 2.27.5+cuda13.0\0")
    machine.link("opt/sglang/current", "opt/sglang/releases/r1")
    machine.write("opt/other/libnccl.so.2.26.2", b"\0NCCL version 2.26.2+cuda12.2\0")
    machine.write("proc/77/cgroup", "0::/system.slice/sglang.service\n")
    machine.write("proc/77/maps", "7f00-7f01 r-xp 00000000 08:01 9      /opt/other/libnccl.so.2.26.2\n")
    machine.write("proc/78/cgroup", "0::/user.slice\n")
    machine.write("proc/78/maps", "7f00-7f01 r-xp 00000000 08:01 9      /opt/mine/libnccl.so.2\n")
    assert recorded(machine)["nccl"] == [
        {"path": "/opt/other/libnccl.so.2.26.2", "loaded": True, "version": "2.26.2"},
        {"path": NCCL, "loaded": False, "version": "2.27.5"},
    ]


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("run/systemd/container", "lxc\n", "lxc"),
        ("proc/1/environ", "TERM=linux\0container=lxc\0", "lxc"),
        (".dockerenv", "", "docker"),
        ("proc/1/environ", "mycontainer=lxc\0", ""),
    ],
)
def test_a_container_is_known_by(doctor, tmp_path, path, text, kind):
    machine = gpu_machine.Machine(tmp_path)
    machine.write(path, text)
    assert doctor.gather(machine.root, paths.ROOT)["container"] == kind


@pytest.mark.parametrize("option", ["--warn", "--skip"])
def test_wrong_arguments(option):
    words = [sys.executable, PROGRAM, f"{option}=acs,nonsense"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{option}: there is no check nonsense" in done.stderr
