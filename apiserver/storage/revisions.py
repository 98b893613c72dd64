"""The first revision of a new store: higher than all revisions of an earlier store at the same address.

Clients keep the last resourceVersion and resume their watches from it. A new store that started at 1 would accept such
a watch as one in the future, and send nothing. With a higher first revision it returns 410, and the client lists.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from mockube.etcd.kv import Revision

_UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
BUMP: Final = 1_000_000_000
"""The distance of a store's first revision from a snapshot that is ahead of the clock; etcdutl's --bump-revision."""


def initial_revision(now: datetime, *, restored: Revision = 0) -> Revision:
    """Return the microseconds since 1970, or a revision after the snapshot that is restored, if that is higher.

    No store writes a million times a second, so the revisions of one that began earlier lie below, unless the clock was
    set back by more than that store had run. The number is exact as a JSON double (below 2**53) until the year 2255.
    """
    by_clock = max((now - _UNIX_EPOCH) // _MICROSECOND, 1)
    return by_clock if by_clock > restored else restored + BUMP
