"""The copy-on-write document of a JSON patch: finding, reading, inserting and deleting by location.

Parts that no operation reaches stay shared with the original document. A failing step raises `PatchNotApplicable` with the
library's reason; the caller adds the operation to the message.
"""

from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery import gotext, json_pointer
from mockube.apimachinery.piecewise import sorted_in_pieces

from .errors import PatchNotApplicable

MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""The maximum number of bytes that all `copy` operations of one patch can add."""

MAX_DEPTH: Final = 254
"""The maximum depth of an object that can be encoded."""

Container: TypeAlias = dict[str, Any] | list[Any]


class Draft:
    """A document that is being patched. Only containers from `writable_copy` may be changed."""

    __slots__ = ("_copied_bytes", "_copies", "root")

    def __init__(self, document: Container) -> None:
        self._copies: dict[int, Container] = {}
        self._copied_bytes = 0
        self.root = self.writable_copy(document)

    def writable_copy(self, container: Container) -> Container:
        """Return the draft's own copy of a container; the container itself if it is one."""
        if id(container) in self._copies:
            return container
        copy: Container = dict(container) if isinstance(container, dict) else list(container)
        self._copies[id(copy)] = copy
        return copy

    def container(self, location: str) -> tuple[Container, str] | None:
        """Return the container of a location's last step, and that step; None if the container does not exist."""
        _, *steps = map(json_pointer.unescape, location.split("/"))
        if not steps:
            return None
        container = self.root
        for step in steps[:-1]:
            try:
                child = read(container, step)
            except PatchNotApplicable:
                return None
            if not isinstance(child, dict | list):
                return None
            copy = self.writable_copy(child)
            write(container, step, copy)
            container = copy
        return container, steps[-1]

    def copy(self, value: Any) -> Any:
        """Return a deep copy for a `copy` operation; its size counts towards the limit."""
        if value is None:
            return None
        text = _encode(value)
        self._copied_bytes += len(text)
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise PatchNotApplicable(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        return self._copy(value)

    def _copy(self, value: Any) -> Any:
        if isinstance(value, dict):
            names = sorted_in_pieces(value) if id(value) in self._copies else value
            return {key: self._copy(value[key]) for key in names}
        return [self._copy(item) for item in value] if isinstance(value, list) else value

    def deep_writable_copy(self, value: Any, depth: int = 0) -> Any:
        """Return a value whose containers are all writable copies, as after an operation that reads all of it."""
        if not isinstance(value, dict | list):
            return value
        if depth > MAX_DEPTH:
            raise PatchNotApplicable("exceeded max depth")
        reached: Any = self.writable_copy(value)
        for step, member in reached.items() if isinstance(reached, dict) else enumerate(reached):
            if isinstance(member, dict | list):
                reached[step] = self.deep_writable_copy(member, depth + 1)
        return reached

    def finish(self) -> Container:
        """Return the document. The objects that operations reached have sorted keys."""
        _encode(self.root)
        for copy in self._copies.values():
            if isinstance(copy, dict):
                items = {key: copy[key] for key in sorted_in_pieces(copy)}
                copy.clear()
                copy.update(items)
        return self.root


def _encode(value: Any) -> bytes:
    """Encode a value. Operations can nest a document deeper than a request can be; that is an error here."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise PatchNotApplicable("exceeded max depth") from None


# --- one step into an object or list


def _index(text: str) -> int:
    try:
        return gotext.parse_int(text, function="Atoi")
    except gotext.NumberError as error:
        raise PatchNotApplicable(str(error)) from None


def _check_index(index: int, length: int) -> int:
    """Return an index as counted from the start; raise `PatchNotApplicable` if it is out of range."""
    if not -length <= index < length:
        raise PatchNotApplicable(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index


def read(container: Container, step: str) -> Any:
    if isinstance(container, dict):
        return container.get(step)
    return container[_check_index(_index(step), len(container))]


def write(container: Container, step: str, value: Any) -> None:
    if isinstance(container, dict):
        container[step] = value
    else:
        container[_check_index(_index(step), len(container))] = value


def insert(container: Container, step: str, value: Any) -> None:
    if isinstance(container, dict):
        container[step] = value
    elif step == "-":
        container.append(value)
    else:
        try:
            index = _index(step)
        except PatchNotApplicable as error:
            raise PatchNotApplicable(f"value was not a proper array index: '{step}': {error}") from None
        container.insert(_check_index(index, len(container) + 1), value)


def delete(container: Container, step: str) -> None:
    if isinstance(container, list):
        del container[_check_index(_index(step), len(container))]
    elif step not in container:
        raise PatchNotApplicable(f"Unable to remove nonexistent key: {step}: missing value")
    else:
        del container[step]


def equal(value: Any, other: Any) -> bool:
    if type(value) is not type(other):
        return False
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(equal(item, other[key]) for key, item in value.items())
    if isinstance(value, list):
        return len(value) == len(other) and all(map(equal, value, other))
    return bool(value == other)
