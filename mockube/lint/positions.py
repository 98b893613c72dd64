"""The lines of fields in YAML and JSON texts. Only texts of objects with findings are searched. Pure."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias

import yaml
from msgspec import Struct

FieldPath: TypeAlias = tuple[str | int, ...]

_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\[\]]*)\]|([^.\[\]]+)")
_BLANK: Final = re.compile(rb"\s*(?:#.*)?\Z")


def parse_path(text: str) -> FieldPath:
    """Parse a path as servers print it, such as `spec.ports[0].name` or `metadata.labels[a.b/c]`."""
    return tuple(int(index) if index else key or name for index, key, name in _STEP.findall(text))


class TextPosition(Struct, frozen=True, kw_only=True, dict=True):
    """The text of an object in its file."""

    text: bytes
    first_line: int
    path: FieldPath = ()
    """The path of the object in the text."""

    @cached_property
    def line(self) -> int:
        """The line on which the object begins."""
        if self.path:
            return self.line_of(())
        lines = self.text.splitlines()
        skipped = next((index for index, line in enumerate(lines) if not _BLANK.match(line)), 0)
        return self.first_line + skipped

    def line_of(self, path: Sequence[str | int]) -> int:
        """Return the line of a field, or of the last step to it that is in the text."""
        node, mark = self._root, None
        for step in (*self.path, *path):
            found = _find(node, step)
            if found is None:
                break
            mark, node = found
        return self.line if mark is None else self.first_line + mark.line

    @property
    def _root(self) -> Any:
        return _compose(self.text)


@lru_cache(maxsize=4)
def _compose(text: bytes) -> Any:
    """Return the root node of a text, which many objects of a list share; None if it cannot be parsed."""
    try:
        return yaml.compose(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeError):
        return None


def _find(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """Return the position of a field or element, and its node; None if there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # the last value of a key counts
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None
