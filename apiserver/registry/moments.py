"""Moments of the past: which revision of the store a revision, a name, a time or a span before now means."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.status import BadRequest, Details, Expired, NotFound
from mockube.apimachinery.timestamps import format_micro_time, format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.storage.journal import JournalEntry
from mockube.etcd.kv import Revision

from .registry import Backend

NOW: Final = "now"
OLDEST: Final = "oldest"
"""The first moment that can be read."""
_REVISION: Final = re.compile(r"[0-9]{1,19}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")


def is_moment(text: str) -> bool:
    """Return whether a text means a moment by itself, so that it cannot be the name of a Mark."""
    return (
        text in (NOW, OLDEST) or text.startswith("-") or bool(_REVISION.fullmatch(text) or _DATE.match(text))
    )


class Moment(Struct, frozen=True, kw_only=True):
    revision: Revision
    time: datetime | None
    """When the revision was made; None if this server does not know it."""

    @classmethod
    def of_spec(cls, spec: ReadOnlyTree) -> "Moment":
        """Return the moment of an object whose spec has a revision."""
        return cls(revision=int(spec["revision"]), time=parse_time(spec["time"]) if "time" in spec else None)

    def time_field(self) -> Tree:
        """Return the field `time` of an object; none if the time is not known."""
        return {} if self.time is None else {"time": format_micro_time(self.time)}


FindMark = Callable[[str], Moment | None]
"""Returns the revision that has a name, and when it got it; None if no Mark has the name."""


def no_mark(_name: str) -> Moment | None:
    """Find no Mark: the server has none."""
    return None


class Moments:
    """Finds the moments that the texts of clients mean, in the history that can be read."""

    def __init__(self, backend: Backend, find_mark: FindMark) -> None:
        self._backend = backend
        self._find_mark = find_mark

    async def find(self, text: str) -> Moment:
        """Return the moment of a revision, a Mark, a time, a span such as -5m, `now` or `oldest`; raise an ApiError if there is none."""
        status = await self._backend.kv.status()
        if text == NOW:
            revision = status.revision
        elif text == OLDEST:
            revision = self._oldest(status.compact_revision)
        elif _REVISION.fullmatch(text):
            revision = int(text)
        elif text.startswith("-"):
            revision = self._at_time(text, self._now() - _span(text), status.revision)
        elif _DATE.match(text):
            revision = self._at_time(text, _time(text).timestamp(), status.revision)
        else:
            revision = self._marked(text).revision
        if revision > status.revision:
            raise BadRequest(f"{text} is in the future: the newest revision is {status.revision}", Details())
        if revision < status.compact_revision:
            raise self._too_old(text, status.compact_revision)
        return Moment(revision=revision, time=self.time_of(revision))

    async def time_since(self, text: str) -> datetime:
        """Return the time of a moment from which on something is counted: what happened before a Mark was made is not after it."""
        if text.startswith("-"):
            return datetime.fromtimestamp(self._now() - _span(text), UTC)
        if _DATE.match(text):
            return _time(text)
        moment = await self.find(text) if is_moment(text) else self._marked(text)
        return self._backend.clock.now() if moment.time is None or text == NOW else moment.time

    def time_of(self, revision: Revision) -> datetime | None:
        """Return the time of a revision, or of the one before it that this server made, if no later one lies between."""
        entry = self._backend.journal.newest_of(revision)
        return None if entry is None else _datetime(entry)

    def _now(self) -> float:
        return self._backend.clock.now().timestamp()

    def _oldest(self, compacted: Revision) -> Revision:
        entry = self._backend.journal.oldest_from(compacted)
        return 1 if compacted <= 1 or entry is None else max(entry.revision, compacted)

    def _at_time(self, text: str, time: float, newest: Revision) -> Revision:
        """Return the revision that was the newest at a time."""
        if time > self._now():
            raise BadRequest(
                f"{text} is in the future: it is {format_time(self._backend.clock.now())}", Details()
            )
        journal = self._backend.journal
        entry = journal.newest_at(time)
        if entry is None:
            raise self._too_old(text, 0)
        return newest if entry is journal.newest() else entry.revision

    def _marked(self, text: str) -> Moment:
        moment = self._find_mark(text)
        if moment is None:
            raise NotFound(
                f"{text} is no moment: a revision, a time such as 2026-01-31T12:00:00Z, a span before now such as -5m, now, "
                "oldest, or the name of a Mark is needed",
                Details(),
            )
        return moment

    def _too_old(self, text: str, oldest: Revision) -> Expired:
        """Return the error of a moment before the history."""
        entry = self._backend.journal.oldest_from(oldest)
        begin = (
            ""
            if entry is None
            else f" at revision {max(entry.revision, oldest)}, {format_time(_datetime(entry))}"
        )
        return Expired(
            f"{text} is before the history of this server, which begins{begin or ' later'}: --history sets how much is kept"
        )


def _datetime(entry: JournalEntry) -> datetime:
    return datetime.fromtimestamp(entry.time, UTC)


def _span(text: str) -> float:
    try:
        return -parse_duration(text) / 1e9
    except DurationError as error:
        raise BadRequest(f"{text} is no span before now such as -5m: {error}", Details()) from error


def _time(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise BadRequest(f"{text} is no time such as 2026-01-31T12:00:00Z: {error}", Details()) from error
