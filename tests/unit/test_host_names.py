import pytest

from blackwell import host_names
from blackwell.host_errors import HostError
from blackwell.host_names import Asked


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("gpu1", Asked("gpu1")),
        ("root@gpu1.example.com", Asked("gpu1.example.com", "root")),
        ("root@gpu1:2222", Asked("gpu1", "root", 2222)),
        ("2001:db8::7", Asked("2001:db8::7")),
        ("root@[2001:db8::7]:2222", Asked("2001:db8::7", "root", 2222)),
        ("me@corp@gpu1", Asked("gpu1", "me@corp")),
    ],
)
def test_parse(text, asked):
    assert host_names.parse(text) == asked


@pytest.mark.parametrize("text", ["", "@gpu1", "root@", "-oProxyCommand=true", "-oA=b@gpu1", "gpu 1", "gpu1:65536"])
def test_what_is_no_host_is_named(text):
    with pytest.raises(HostError, match=r"is not a host|ports end at 65535"):
        host_names.parse(text)


def test_suggests_what_is_close():
    assert host_names.suggestion("sandbx1", ["sandbox1", "gpu7"]) == "did you mean sandbox1?"


def test_lists_what_there_is_when_nothing_is_close():
    assert host_names.suggestion("web", [f"gpu{number}" for number in range(10)]) == (
        "the inventory has gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7 and 2 more"
    )
