"""The errors of a store.

Callers distinguish them by class, never by text. `outcome_unknown` is whether a mutating request that failed this way
may have been executed.
"""

from typing import ClassVar


class KVError(Exception):
    """The base class of the errors of a store."""

    outcome_unknown: ClassVar[bool] = False

    def __init__(self, reason: str = "", *, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        """What is wrong, without the path of the file: clients of a server do not learn where its files are."""
        self.path = path


class Compacted(KVError):
    """The requested revision is compacted."""

    def __init__(self, requested: int, compact_revision: int) -> None:
        super().__init__(f"revision {requested} has been compacted: history begins at {compact_revision}")
        self.requested = requested
        self.compact_revision = compact_revision


class FutureRevision(KVError):
    """The requested revision is in the future."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is in the future: the store is at {current}")
        self.requested = requested
        self.current = current


class LeaseNotFound(KVError):
    """No such lease: never granted, revoked, or expired."""


class LeaseExists(KVError):
    """A lease of that id exists already."""


class InvalidRequest(KVError):
    """The request is invalid in etcd's model: an empty key, one key put twice in a transaction, a TTL of 0."""


class TooLarge(KVError):
    """The request exceeds the store's size limit, or a transaction has too many operations."""


class NoSpace(KVError):
    """The store's disk or quota is full: nothing was written, reads continue."""


class PermissionDenied(KVError):
    """The store refused these credentials."""


class Unavailable(KVError):
    """The store cannot serve this now, and nothing was changed."""


class Timeout(KVError):
    """No response within the deadline: the request may or may not have been executed."""

    outcome_unknown = True


class Interrupted(KVError):
    """The connection or the disk failed during the request: it may or may not have been executed."""

    outcome_unknown = True


class Unsupported(KVError):
    """The backend does not support the operation; nothing was changed."""


class WatcherTooSlow(KVError):
    """The watcher is further behind than its bound; it must start again from the last revision it received."""

    def __init__(self, pending: int, limit: int) -> None:
        super().__init__(f"watcher cancelled: {pending} revisions pending, the limit is {limit}")
        self.pending = pending
        self.limit = limit


class Closed(KVError):
    """The store or the watch was closed."""


class Corrupt(KVError):
    """The store's files are damaged."""

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(f"corrupt at byte {offset}: {reason}", path=path)
        self.offset = offset
        self.reason = reason


class UnsafeDirectory(KVError):
    """Another user could change the content of the data directory."""


class Locked(KVError):
    """Another process uses this data directory."""
