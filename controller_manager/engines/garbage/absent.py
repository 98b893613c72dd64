"""Owners that the server did not have when it was asked: their uids come never again. A few, the latest asked for."""

from collections import OrderedDict
from typing import Final

_MOST: Final = 500


class Absent:
    def __init__(self) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, uid: str) -> bool:
        if uid not in self._uids:
            return False
        self._uids.move_to_end(uid)
        return True

    def add(self, uid: str) -> None:
        self._uids[uid] = None
        if len(self._uids) > _MOST:
            self._uids.popitem(last=False)
