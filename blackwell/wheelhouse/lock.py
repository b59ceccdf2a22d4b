"""Makes the lock of a wheelhouse from its list of requirements."""

from blackwell.wheelhouse.house import Wheelhouse
from blackwell.wheelhouse.pins import parse_lock, render_lock
from blackwell.wheelhouse.pip import PYTHON, resolve
from blackwell.wheelhouse.variants import check_pins


def write_lock(house: Wheelhouse, *, upgrade: bool) -> int:
    """Resolve the requirements, write the lock and return the number of its packages.

    Versions of the present lock are kept unless ``upgrade`` is set. Raises WheelhouseError and leaves the lock as it
    is.
    """
    kept = parse_lock(house.lock.read_text(), house.lock) if house.lock.exists() and not upgrade else []
    pins = resolve(house.requirements, [str(pin) for pin in kept], house.variant)
    check_pins(house.variant, pins, house.requirements)
    partial = house.lock.with_name(f".{house.lock.name}.partial")
    partial.write_text(render_lock(pins, header(house)))
    partial.replace(house.lock)
    return len(pins)


def header(house: Wheelhouse) -> list[str]:
    """Return the comment at the head of the lock."""
    return [
        f"Third-party packages of {house.product.title} {house.release}, {house.variant.name}: one wheel each,",
        f"for CPython {PYTHON} on Linux x86_64 only (glibc as in Debian 12).",
        f"Made by: {house.lock_command}",
        f"from {house.requirements.name}; installed with pip --no-deps --require-hashes.",
    ]
