"""Share equal parts of cached objects: the pods of a ReplicaSet have most of their fields in common.

A pod takes 13 kB as a tree of its own, and 4 kB if equal parts are shared, which takes 20 us. An object is shared before it is
stored: what is replaced is freed at once, and the next object takes its place in memory.
"""

from collections.abc import Callable
from typing import Any, Final

import orjson

from mockube.apimachinery.tree import Tree

MAX_PARTS: Final = 10_000
"""The parts that are remembered until they are old, and then as long again unless another object has them."""
MAX_BYTES: Final = 1024
"""The size in JSON of a part that is shared as a whole; of a larger one, the inner parts."""
MAX_DEPTH: Final = 8
"""The depth up to which parts are shared: each level is encoded once more."""
MAX_TEXTS: Final = 20_000
"""The number of texts that are remembered; then they are forgotten."""
MAX_LENGTH: Final = 128
"""The length of a text that is shared."""

_CONTAINERS: Final = frozenset({dict, list})
_OUTER: Final = frozenset({"metadata", "spec", "status"})
_UNIQUE: Final = frozenset(
    {"name", "uid", "resourceVersion", "podIP", "podIPs", "containerStatuses", "initContainerStatuses"}
)
"""Fields of metadata and status that each object has for itself. Inner parts of them may be equal."""


class SharedParts:
    """The parts that objects share: dicts, lists and texts. Nothing may change them."""

    def __init__(self) -> None:
        self._recent: dict[bytes, Any] = {}
        """Parts by their JSON, which differs for 1, 1.0 and true, and for other orders of fields."""
        self._older: dict[bytes, Any] = {}
        self._texts: dict[str, str] = {}

    def share(self, tree: Tree) -> Tree:
        """Return an equal object, whose parts are parts of other objects where these are equal. It may have parts of `tree`."""
        return {
            name: self._outer(value) if name in _OUTER and type(value) is dict else self._value(value, 0)
            for name, value in tree.items()
        }

    def _outer(self, fields: Tree) -> Tree:
        """Return metadata, spec or status. These are different in each object, so they are not remembered."""
        return {
            name: self._own(value) if name in _UNIQUE else self._value(value, 1)
            for name, value in fields.items()
        }

    def _own(self, value: Any) -> Any:
        """Return the value of a unique field, such as the statuses of containers: of each item, only the fields are shared."""
        return self._copy(value, 1, self._own_item) if type(value) in _CONTAINERS else value

    def _own_item(self, value: Any, depth: int) -> Any:
        return self._copy(value, depth, self._value) if type(value) in _CONTAINERS else value

    def _value(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value) if len(value) <= MAX_LENGTH else value
        return self._part(value, depth) if kind in _CONTAINERS else value

    def _text(self, value: str) -> str:
        texts = self._texts
        if len(texts) >= MAX_TEXTS:
            texts.clear()
        return texts.setdefault(value, value)

    def _part(self, value: Any, depth: int) -> Any:
        """Return an equal part that was seen before, or an equal one of shared inner parts."""
        if depth > MAX_DEPTH:
            return value
        try:
            content = orjson.dumps(value)
        except orjson.JSONEncodeError:  # nested too deeply
            return value
        if len(content) > MAX_BYTES:
            return self._copy(value, depth, self._value)
        part = self._recent.get(content)
        if part is None:
            part = self._older.get(content)
            if part is None:
                part = self._copy(value, depth, self._value)
            self._remember(content, part)
        return part

    def _remember(self, content: bytes, part: Any) -> None:
        if len(self._recent) >= MAX_PARTS:
            self._older, self._recent = self._recent, {}
        # orjson's buffer is several times as large as its content, so it is copied.
        self._recent[bytes(memoryview(content))] = part

    @staticmethod
    def _copy(value: Any, depth: int, share: Callable[[Any, int], Any]) -> Any:
        """Return a dict or a list with shared items. A decoded dict is larger than one that is made of its items."""
        if type(value) is dict:
            return {name: share(item, depth + 1) for name, item in value.items()}
        for index, item in enumerate(value):
            value[index] = share(item, depth + 1)
        return value
