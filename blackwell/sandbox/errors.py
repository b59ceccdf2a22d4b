"""The one exception that users see."""


class SandboxError(Exception):
    """Something the user can act on; its text is one sentence."""
