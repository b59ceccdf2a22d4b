"""What nvidia-smi says, as what an operator should know."""

import pytest

from blackwell import gpus
from blackwell.gpus import Card, Cards, Process

NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
SERVICE = "0::/system.slice/sglang.service\n"


def found(cards="", processes="", **groups):
    return {"cards": {"text": cards}, "processes": {"text": processes}, "groups": groups}


def test_no_nvidia_smi():
    assert gpus.parse(None) is None


@pytest.mark.parametrize(
    ("line", "card"),
    [
        (f"0, {NAME}, 0, 0x0000000000000001", Card("0", NAME, 0, ())),
        (f"1, {NAME}, [N/A], 0x0000000000000004", Card("1", NAME, None, ())),
        (f"7, {NAME}, 2, 0x0000000000000048", Card("7", NAME, 2, ("hardware slowdown", "too hot, by the hardware"))),
        (f"0, {NAME}, 0, [N/A]", Card("0", NAME, 0, ())),
    ],
)
def test_a_card(line, card):
    assert gpus.parse(found(f"{line}\n")) == Cards((card,), ())


def test_processes_that_are_not_of_the_service():
    processes = "11, 90000, /opt/sglang/venv/bin/python\n12, 512, /usr/bin/a, b\n13, [N/A], [Not Found]\n14, 4, x\n"
    groups = {
        "11": SERVICE,
        "12": "0::/user.slice/user-0.slice/session-1.scope\n",
        "14": "0::/system.slice/blackwell-bench-server.service/inner\n",
    }
    assert gpus.parse(found("", processes, **groups)).strangers == (
        Process("12", "512", "/usr/bin/a, b"),
        Process("13", "[N/A]", "[Not Found]"),
    )


@pytest.mark.parametrize("name", ["/system.slice/my-sglang.service", "/system.slice/sglang.service.d", "/other"])
def test_a_control_group_that_only_looks_like_the_services(name):
    assert gpus.parse(found("", "11, 1, python\n", **{"11": f"0::{name}\n"})).strangers


def test_what_nvidia_smi_says_instead():
    lost = {"error": "Unable to determine the device handle for GPU0: GPU is lost"}
    assert gpus.parse(found() | {"cards": lost}).error == lost["error"]
    assert gpus.parse(found(cards="0, A, 0\n")).error == "it answered in another form"
