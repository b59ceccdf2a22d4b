"""The errors of the measuring modules."""


class BenchError(Exception):
    """Says in one sentence which server, file or setting stands in the way."""


class LoadError(BenchError):
    """A server did not answer, or not as a server does that can be measured."""
