"""Stands in for the program of a sweep: has one server started, and says why it ended."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

from blackwell.sweep import deployed, service

DEPLOYED = SimpleNamespace(name="deployed", flags={}, environment={})


def main(run: Path) -> None:
    found = deployed.read()
    deployed.write(run, found)
    try:
        server = service.Host(found, ()).start(DEPLOYED, speculates=False)
        (run / "server").write_text(server.url)
        while (why := service.ended()) is None:
            time.sleep(0.2)
    except service.TakenError as error:
        why = f"taken: {error}"
    (run / "why").write_text(why)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
