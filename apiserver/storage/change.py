"""What happened to one object at one revision, for everybody who watches it."""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from apiserver.storage.stored import Stored


class ChangeKind(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


Encode: TypeAlias = Callable[[str, Stored], bytes]
"""Makes a watch's frame of an event."""


class Change:
    """`after` is the object as it became; of a deletion, as it last was, at the deletion's revision."""

    __slots__ = ("_frames", "after", "before", "kind", "moment")

    def __init__(self, kind: ChangeKind, after: Stored, before: Stored | None, moment: float) -> None:
        self.kind = kind
        self.after = after
        self.before = before
        self.moment = moment
        """When this process heard of it, in its clock's seconds."""
        self._frames: dict[tuple[Encode, str], bytes] = {}

    @property
    def revision(self) -> int:
        return self.after.revision

    def let_go(self) -> None:
        """Keep no frames: hardly anybody asks for them any more, and who does has them made again."""
        self._frames.clear()

    def frame(self, encode: Encode, kind: str, shown: Stored) -> bytes:
        """The event encoded; every watch that wants it the same way is handed the same bytes."""
        made = self._frames.get((encode, kind))
        if made is None:
            made = self._frames[encode, kind] = encode(kind, shown)
        return made
