"""The one error of the modules that maintain a patch series."""


class PatchesError(Exception):
    """Says in one sentence, for the maintainer, which patch, commit or file stands in the way."""
