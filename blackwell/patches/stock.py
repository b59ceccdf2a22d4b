"""SGLang's own wheel, which a patch series is based on: from the wheelhouse's store, or downloaded into it."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from blackwell import paths
from blackwell.patches.errors import PatchesError
from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.fetch import SCRATCH, collect, locked
from blackwell.wheelhouse.pins import Pin
from blackwell.wheelhouse.store import stored
from blackwell.wheelhouse.variants import Variant


def stock_wheel(manifest: dict, say: Callable[[str], None]) -> Path:
    """The wheel that a manifest names, its hash checked.

    Raises PatchesError if it can neither be found nor downloaded.
    """
    base = manifest["base"]
    pin = Pin(base["package"], base["version"], base["sha256"], base["wheel"])
    directory = paths.cache() / "wheelhouse"
    store = directory / "wheels"
    try:
        if found := stored(store, pin):
            return found
        directory.mkdir(parents=True, exist_ok=True)
        with (
            locked(directory / ".lock", say),
            tempfile.TemporaryDirectory(prefix=SCRATCH, dir=directory) as scratch,
        ):
            # Its wheel is the same for every kind of host.
            return collect([pin], store, Path(scratch), Variant("any"), say)[pin]
    except WheelhouseError as error:
        raise PatchesError(str(error)) from error
