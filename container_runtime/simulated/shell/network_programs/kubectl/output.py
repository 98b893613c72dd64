"""The output formats of kubectl: names, JSON, YAML, JSONPath and tables."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import orjson
import yaml
from msgspec import Struct

from mockube.apimachinery import jsonpath, meta
from mockube.apimachinery.jsonpath import JSONPathError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.process import UnknownProgram

from .client import ServedResource
from .connection import KubectlError

_INDENT: Final = re.compile(r"(?m)^ +")
_PART: Final = re.compile(r"\{((?:[^{}\"']|\"(?:[^\"\\]|\\.)*\"|'[^']*')*)\}|([^{]+)|(\{)")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_FORMATS: Final = frozenset({"", "name", "json", "yaml", "wide"})


def check_format(text: str) -> None:
    """Raise `UnknownProgram` for a format that is not simulated."""
    if text not in _FORMATS and not text.startswith("jsonpath="):
        raise UnknownProgram(f"kubectl -o {text.partition('=')[0]}")


def reference(resource: ServedResource, name: str) -> str:
    return f"{resource.title}/{name}"


def render(resource: ServedResource, objects: Sequence[ReadOnlyTree], text: str, *, is_list: bool) -> str:
    """Return objects in a format; `is_list` says whether they are the result of a list."""
    if text == "name":
        return "".join(f"{reference(resource, meta.name(tree))}\n" for tree in objects)
    tree: Any = objects[0] if len(objects) == 1 and not is_list else list_of(objects)
    if text == "json":
        return to_json(tree)
    if text == "yaml":
        return to_yaml(tree)
    return expand_template(text.removeprefix("jsonpath="), tree)


def list_of(objects: Sequence[ReadOnlyTree]) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}


def to_json(tree: Any) -> str:
    text = orjson.dumps(tree, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
    return _INDENT.sub(lambda match: match[0] * 2, text) + "\n"


def to_yaml(tree: Any) -> str:
    return yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=True, default_flow_style=False, width=10_000)


def table_lines(table: ReadOnlyTree, *, is_wide: bool, has_header: bool, prefix: str = "") -> str:
    """Return the rows of a Table; `prefix` is the name of the kind before each name."""
    columns = [
        index
        for index, column in enumerate(table.get("columnDefinitions") or ())
        if is_wide or not column.get("priority")
    ]
    rows = [
        [_cell(row["cells"][index]) for index in columns if index < len(row.get("cells") or ())]
        for row in table.get("rows") or ()
    ]
    rows = [[f"{prefix}{row[0]}", *row[1:]] for row in rows if row]
    header = [str(table["columnDefinitions"][index]["name"]).upper() for index in columns]
    lines = [header, *rows] if has_header else rows
    return align(lines)


def align(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells in columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=False)]
    return "".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip() + "\n"
        for line in lines
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<none>"
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Range(Struct):
    """A part of a template that is repeated for each value of a path; the whole template has no path."""

    path: str = ""
    parts: list["str | tuple[str] | _Range"] = []
    """Texts, paths as tuples of one, and ranges."""


def expand_template(template: str, tree: Any) -> str:
    """Return the text of a JSONPath template, with {range PATH}…{end} and {"text"}."""
    if len(template) > limits.MAX_TEMPLATE:
        raise KubectlError("error: the template is too long")
    try:
        return "".join(islice(_expand(_parse_template(template), tree), limits.MAX_TEMPLATE_PARTS))
    except JSONPathError as error:
        raise KubectlError(f"error: error parsing jsonpath {template}, {error}") from None


def _parse_template(template: str) -> _Range:
    stack = [_Range(parts=[])]
    for match in _PART.finditer(template if "{" in template else f"{{{template}}}"):
        expression, text, stray = match[1], match[2], match[3]
        if stray:
            raise JSONPathError("unclosed action")
        if text is not None:
            stack[-1].parts.append(text)
            continue
        word = expression.strip()
        if word.startswith("range "):
            inner = _Range(path=word.removeprefix("range ").strip(), parts=[])
            stack[-1].parts.append(inner)
            stack.append(inner)
        elif word == "end":
            if len(stack) == 1:
                raise JSONPathError("not in range, nothing to end")
            stack.pop()
        elif word[:1] in ('"', "'"):
            stack[-1].parts.append(_ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), word[1:-1]))
        else:
            stack[-1].parts.append((word,))
    if len(stack) > 1:
        raise JSONPathError("unclosed range")
    return stack[0]


def _expand(part: _Range, tree: Any) -> Iterator[str]:
    for item in part.parts:
        if isinstance(item, str):
            yield item
        elif isinstance(item, tuple):
            yield " ".join(_text(value) for value in find_values(item[0], tree))
        else:
            for value in find_values(item.path, tree):
                yield ""  # an iteration counts also if it has no text
                yield from _expand(item, value)


def find_values(path: str, tree: Any) -> Sequence[Any]:
    return _parse_path(path.removeprefix("$").removeprefix("@") or ".")(tree)


@lru_cache(maxsize=256)
def _parse_path(path: str) -> Callable[[Any], Sequence[Any]]:
    return jsonpath.parse(path)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode()
