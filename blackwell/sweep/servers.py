"""What the engine needs of whoever starts its servers."""

from typing import Protocol

from .plan import Settings


class Server(Protocol):
    """A server that is ready after ``start_s`` seconds."""

    @property
    def url(self) -> str:
        """Scheme, host and port."""

    @property
    def start_s(self) -> float:
        """Seconds that its start took."""


class Servers(Protocol):
    """Starts and stops the servers of a sweep, one at a time."""

    def start(self, settings: Settings, *, speculates: bool) -> Server:
        """Start one and wait until it is ready; raises BenchError with the reason if it does not get there."""

    def stop(self) -> None:
        """Stop it, if one runs."""

    def ended(self) -> str | None:
        """Why it does not run any more, a clause without full stop; None if it does.

        Raises BenchError if it is not to be started again.
        """
