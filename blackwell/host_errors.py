"""The one error of the modules that look at hosts."""


class HostError(Exception):
    """Something the user can act on; its text is one sentence that names the host, variable or file."""
