"""Nobody reads or reaches what he should not."""

import pytest


def test_owner_and_mode(host, intent):
    asked = intent["server"]["files"]
    lines = host.check_output("stat -c '%%n %%U %%G %%a'" + " %s" * len(asked), *asked).splitlines()
    assert dict(line.split(" ", 1) for line in lines) == asked


def test_the_service_user_has_no_shell(host, intent):
    assert host.user(intent["sglang"]["user"]).shell == "/usr/sbin/nologin"


def test_no_key_on_the_command_line(host, main_pid):
    arguments = host.check_output("tr '\\0' '\\n' < /proc/%s/cmdline", main_pid).split("\n")
    assert not [word for word in arguments if word.startswith(("--api-key", "--admin-api-key"))]


def test_listens_where_it_is_told_to(host, intent):
    address = "::1" if intent["server"]["host"] == "::1" else intent["server"]["host"].replace("localhost", "127.0.0.1")
    assert host.socket(f"tcp://{address}:{intent['server']['port']}").is_listening


def test_nobody_else_reaches_a_socket_of_the_service(host, intent, main_pid):
    """PyTorch's rendezvous listens on every address; the unit keeps others out. Tried from the host's own address."""
    if not intent["server"]["loopback"]:
        pytest.skip("sglang_server_trusted_network: the inventory lets others reach the server")
    pids = {main_pid, *host.check_output("pgrep --parent %s", main_pid).split()}
    lines = [line for line in host.check_output("ss -Hltnp").splitlines() if any(f"pid={pid}," in line for pid in pids)]
    ports = {line.split()[3].rsplit(":", 1)[1] for line in lines}
    assert str(intent["server"]["port"]) in ports
    address = host.check_output("hostname -I").split()[0]
    assert not [port for port in ports if host.run("timeout 1 bash -c %s", f"</dev/tcp/{address}/{port}").rc == 0]
