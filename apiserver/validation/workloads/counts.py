"""Numbers of pods in the statuses of workloads, and those that never go down."""

from collections.abc import Iterable

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apiserver.validation.kind import Update
from apiserver.validation.rules import Check, Tree, every, field, non_negative


def counts(*names: str) -> Check:
    """None of these numbers is negative."""
    return every(*(field(name, non_negative) for name in names))


def no_more_than_field(name: str, *names: str, shown: str) -> Check:
    """Each of these numbers is at most the one that is called `name`; `shown` is how messages call that."""

    def check(status: Tree, path: Path) -> Iterable[FieldError]:
        most = status.get(name, 0)
        return [
            errors.invalid(path.child(other), status.get(other, 0), f"cannot be greater than {shown}")
            for other in names
            if status.get(other, 0) > most
        ]

    return check


def check_collisions(new: Tree, old: Tree) -> Iterable[FieldError]:
    """How often a revision's name was somebody else's only grows."""
    of_new, of_old = ((tree.get("status") or {}).get("collisionCount") for tree in (new, old))
    if of_old is None or (of_new is not None and of_new >= of_old):
        return ()
    path = ROOT.child("status", "collisionCount")
    return (errors.invalid(path, of_new or 0, "cannot be decremented"),)


def status_update(check: Check) -> Update:
    return lambda new, _old: check(new.get("status") or {}, ROOT.child("status"))
