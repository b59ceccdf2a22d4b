"""The one error of the wheelhouse's modules."""


class WheelhouseError(Exception):
    """Says in one sentence, for the user, which package or file stands in the way."""
