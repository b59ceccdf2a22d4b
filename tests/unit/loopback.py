"""Addresses of this machine."""

import socket


def closed_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
