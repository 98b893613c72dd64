"""What an operator had not seen when it wrote: the changes that a disturbance hid from its lists and watches."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.operators.end_state import Identity, label_of

from .change import Change, changed_fields
from .plans import ALL

UNSEEN: Final = "it had not seen"
"""The beginning of a line."""


class HiddenChanges(Struct, kw_only=True):
    """The changes of a resource that the operator does not see for a while."""

    resource: str
    """`*` for all."""
    revision: int
    """The newest one that it sees."""
    began: float
    """The seconds of the run since when it does not see later ones."""
    ended: float = inf
    lag: float = inf
    """After so many seconds it sees each one."""

    def hides(self, change: Change, at: float) -> bool:
        """Return whether the operator does not see a change at a moment."""
        is_of_resource = self.resource in (ALL, change.resource)
        return is_of_resource and change.revision > self.revision and change.seconds + self.lag > at


def unseen_lines(
    changes: Sequence[Change], operator: str, hidden: Sequence[HiddenChanges]
) -> Iterator[tuple[float, str]]:
    """Yield for each disturbance what the operator had seen, and what was true, at its first write that did not know that."""
    for each in hidden:
        for index, write in enumerate(changes):
            if write.user != operator or not each.began <= write.seconds < each.ended:
                continue
            missed = [change for change in changes[:index] if each.hides(change, write.seconds)]
            if missed:
                yield write.seconds, _line(write, missed)
                break


def _line(write: Change, missed: Sequence[Change]) -> str:
    """Return what an operator had not seen of the object that it wrote, or else of the one that changed last."""
    by_object: dict[Identity, list[Change]] = {}
    for change in missed:
        by_object.setdefault(change.identity, []).append(change)
    identity = write.identity if write.identity in by_object else missed[-1].identity
    first, last = by_object[identity][0], by_object[identity][-1]
    others = len(by_object) - 1
    more = f", and changes of {others} more object{'s' if others > 1 else ''}" if others else ""
    return f"{UNSEEN} {_difference(identity, first.before, last.after)} (revision {last.revision}){more}"


def _difference(identity: Identity, seen: ReadOnlyTree | None, true: ReadOnlyTree | None) -> str:
    label = label_of(identity)
    if true is None:
        return f"that {label} was deleted"
    if seen is None:
        return f"that {label} was made"
    return f"of {label}: {changed_fields(identity, seen, true) or 'a new version'}"
