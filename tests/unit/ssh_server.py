"""An SSH server in this process for tests: it lets keys in and runs commands as the user who runs the tests."""

import socket
import subprocess
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import paramiko


@dataclass(frozen=True)
class Running:
    port: int
    key: paramiko.PKey


class _Server(paramiko.ServerInterface):
    def __init__(self, accepted):
        self.accepted = accepted

    def check_auth_publickey(self, username, key):
        welcome = username == "tester" and key == self.accepted
        return paramiko.AUTH_SUCCESSFUL if welcome else paramiko.AUTH_FAILED

    def get_allowed_auths(self, _username):
        return "publickey"

    def check_channel_request(self, _kind, _number):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=_execute, args=(channel, command.decode()), daemon=True).start()
        return True


def _execute(channel, command):
    sent = channel.makefile("rb").read()
    done = subprocess.run(["sh", "-c", command], input=sent, capture_output=True, check=False)
    channel.sendall(done.stdout)
    channel.sendall_stderr(done.stderr)
    channel.send_exit_status(done.returncode)
    channel.close()


@contextmanager
def serving(host_key, accepted):
    """A server on a port of 127.0.0.1 that the user ``tester`` enters with the key ``accepted``."""
    transports = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept():
            # Closing the socket ends the wait for the next client.
            with suppress(OSError):
                while True:
                    transport = paramiko.Transport(listening.accept()[0])
                    transports.append(transport)
                    transport.add_server_key(host_key)
                    # With an event it does not wait: a client that refuses the host key must not end this thread.
                    transport.start_server(threading.Event(), _Server(accepted))

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield Running(listening.getsockname()[1], host_key)
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for transport in transports:
        transport.close()
