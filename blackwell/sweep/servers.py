"""What the engine needs of whoever starts its servers."""

from dataclasses import dataclass
from typing import Protocol

from blackwell.bench.errors import BenchError

from .plan import Settings


class EndedError(BenchError):
    """The server is gone, and it is not to be started again."""


@dataclass(frozen=True)
class Server:
    """A server that is ready."""

    url: str
    start_s: float


class Servers(Protocol):
    """Starts and stops the servers of a sweep, one at a time."""

    def start(self, settings: Settings, *, speculates: bool) -> Server:
        """Start one and wait until it is ready; raises BenchError with the reason if it does not get there."""

    def stop(self) -> None:
        """Stop it, if one runs."""

    def ended(self) -> str | None:
        """Why it does not run any more, a clause without full stop; None if it does.

        Raises EndedError if it has to stay down.
        """
