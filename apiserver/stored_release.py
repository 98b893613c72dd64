"""The minor release of the server that last used a data folder, and what a change of the release means.

Kubernetes is upgraded one minor release at a time, and not downgraded. A server starts all the same, as kube-apiserver does.
"""

import logging
from pathlib import Path
from typing import Final, NamedTuple

from mockube.apimachinery.schema import minors

from .pki.private import write_private

LOG: Final = logging.getLogger(__name__)

_FILE: Final = "kubernetes-version"
"""The file in the data folder."""


class ReleaseChange(NamedTuple):
    """What follows from the start of another release, and whether Kubernetes supports that."""

    text: str
    is_supported: bool


def last_minor(data_dir: Path) -> str:
    """Return the minor release that last used a data folder; "" if that is unknown."""
    try:
        minor = (data_dir / _FILE).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return minor if minor in minors.MINORS else ""


def record_minor(data_dir: Path, minor: str) -> None:
    """Record the minor release that uses a data folder now."""
    try:
        if last_minor(data_dir) != minor:
            write_private(data_dir / _FILE, f"{minor}\n".encode())
    except OSError as error:
        LOG.warning("%s: the release cannot be recorded: %s", data_dir, error)


def change_of_release(last: str, minor: str) -> ReleaseChange | None:
    """Return what the start of a minor release on the store of another one means; None if it is the same, or unknown."""
    if not last or last == minor:
        return None
    used = f"the store was last used by Kubernetes {last}"
    if minors.is_before(minor, last):
        consequence = (
            f"{used}, and Kubernetes does not support a downgrade to {minor}: objects of kinds or versions that {minor} does not serve are "
            f"hidden until it is {last} again, and a change of an object drops the fields that {minor} does not know"
        )
        return ReleaseChange(consequence, is_supported=False)
    next_number = minors.number(last) + 1
    if minors.number(minor) > next_number:
        return ReleaseChange(
            f"{used}: a real cluster is upgraded one minor release at a time, to 1.{next_number} before {minor}",
            is_supported=False,
        )
    return ReleaseChange(f"{used}, and is upgraded to {minor}", is_supported=True)
