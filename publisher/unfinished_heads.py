"""The heads of requests that are not complete: which connections wait for one, and what the parts of the heads hold together."""

from typing import Protocol

from . import limits


class NoteRequest(Protocol):
    def __call__(self, *, has_request: bool) -> None:
        """Note whether a request is in progress: then its connection is not idle, though neither side may send."""


class UnfinishedHeads:
    def __init__(self) -> None:
        self.size = 0
        """The bytes of all heads that are not complete, without the first `SMALL_HEAD` of each."""

    def of(self, note_request: NoteRequest) -> "UnfinishedHead":
        """Return what notes the heads of a connection."""
        return UnfinishedHead(self, note_request)


class UnfinishedHead:
    """The head of one connection."""

    def __init__(self, heads: UnfinishedHeads, note_request: NoteRequest) -> None:
        self._heads = heads
        self._note_request = note_request
        self._size = 0

    def begin(self) -> None:
        """Note that the connection waits for a head, or has another protocol than HTTP."""
        self._note_request(has_request=False)

    def has_room(self, size: int) -> bool:
        """Note the bytes of the head that were received; return whether there is memory for it."""
        excess = max(size - limits.SMALL_HEAD, 0)
        self._heads.size += excess - self._size
        self._size = excess
        return not excess or self._heads.size <= limits.ALL_HEADS

    def end(self) -> None:
        """Note that the head is complete, or that the connection has ended."""
        self._note_request(has_request=True)
        self.has_room(0)
