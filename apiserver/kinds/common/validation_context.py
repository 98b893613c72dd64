"""What a validation depends on besides the object: the minor release, and whether the cluster forbids privileged containers.

The minor is the newest, unless the kinds of an older one validate. It is for rules that change within the validation of a part:
those that can be added to or removed from the result are in `minors/rules.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mockube.apimachinery.schema import minors

_minor: ContextVar[str] = ContextVar("minor", default=minors.NEWEST)
_forbids_privileged: ContextVar[bool] = ContextVar("forbids_privileged", default=False)


@contextmanager
def validate_unprivileged() -> Iterator[None]:
    """Validate as a cluster that forbids privileged containers, while the context lasts."""
    token = _forbids_privileged.set(True)
    try:
        yield
    finally:
        _forbids_privileged.reset(token)


def forbids_privileged() -> bool:
    return _forbids_privileged.get()


@contextmanager
def validate_as(minor: str) -> Iterator[None]:
    """Validate as a minor release does, while the context lasts."""
    token = _minor.set(minor)
    try:
        yield
    finally:
        _minor.reset(token)


def validated_minor() -> str:
    return _minor.get()


def is_before(minor: str) -> bool:
    """Return whether the rules are those of a release before a minor."""
    return minors.is_before(_minor.get(), minor)
