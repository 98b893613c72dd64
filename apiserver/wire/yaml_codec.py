"""YAML as Kubernetes reads and writes it: trees that JSON could hold, by the rules of YAML 1.1 as Go's library has them.

`y`, `on` and their like are booleans, `017` is an octal number, dates are texts. Keys become texts. Of several
documents only the first is read. A document whose aliases multiply is refused before it is made.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import yaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_NODES: Final = 500_000
"""That a document may have once its aliases are followed."""
MAX_ALIASED: Final = 10_000
"""Of these, beyond one a byte, which is all that a document can have without aliases."""
MAX_DEPTH: Final = 200
_TOO_DEEP = "error converting YAML to JSON: yaml: exceeded max depth"

_BOOL, _INT, _FLOAT, _NULL, _MERGE, _STR = (
    f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "null", "merge", "str")
)
_PATTERNS: Sequence[tuple[str, str, str]] = (
    (
        _BOOL,
        r"y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF",
        "yYtToOnNfF",
    ),
    (_INT, r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    (
        _FLOAT,
        r"[-+]?(?:[0-9]*\.?[0-9]+(?:[eE][-+][0-9]+)?|[0-9]+\.)|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    (_NULL, r"~|null|Null|NULL|", "~nN"),
    (_MERGE, r"<<", "<"),
)
_RESOLVERS: Mapping[str, list[tuple[str, re.Pattern[str]]]] = {
    first: [
        (tag, re.compile(f"^(?:{pattern})$"))
        for tag, pattern, firsts in _PATTERNS
        if first in firsts or (tag == _NULL and not first)
    ]
    for first in {*"".join(firsts for _, _, firsts in _PATTERNS), ""}
}
_TRUE = frozenset({"y", "yes", "true", "on"})

_CLoader: Any = yaml.CSafeLoader
_CDumper: Any = yaml.CSafeDumper


class YamlError(ValueError):
    """Not YAML, or not such as JSON could say."""


class Loaded(Struct, frozen=True):
    tree: Any
    complaints: tuple[str, ...] = ()
    """Keys that came twice; the last counts."""


class _Loader(_CLoader):  # type: ignore[misc]  # PyYAML is not typed where it is compiled
    """Counts how deep it is at each node it goes into: the compiled composer recurses without a look at its stack."""

    yaml_implicit_resolvers = _RESOLVERS

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._depth = 0

    def descend_resolver(self, _parent: Node | None, _index: object) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise YamlError(_TOO_DEEP)

    def ascend_resolver(self) -> None:
        self._depth -= 1


def load(data: bytes) -> Loaded:
    loader = _Loader(data)
    try:
        node = loader.get_node() if loader.check_node() else None
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(f"error converting YAML to JSON: {_shown(error)}") from error
    finally:
        loader.dispose()
    maker = _Maker(min(MAX_NODES, len(data) + MAX_ALIASED))
    return Loaded(None if node is None else maker.make(node, 0), tuple(maker.complaints))


def _shown(error: Exception) -> str:
    """As Go's library says it, with the line it happened in."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or problem is None:
        return f"yaml: {problem or error}"
    return f"yaml: line {mark.line + 1}: {problem}"


class _Maker:
    """Makes a tree of nodes, and counts them."""

    def __init__(self, most: int) -> None:
        self.complaints: list[str] = []
        self._left = most

    def make(self, node: Node, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise YamlError("error converting YAML to JSON: yaml: document contains excessive aliasing")
        if depth > MAX_DEPTH:
            raise YamlError(_TOO_DEEP)
        if isinstance(node, MappingNode):
            return self._mapping(node, depth + 1)
        if isinstance(node, SequenceNode):
            return [self.make(item, depth + 1) for item in node.value]
        assert isinstance(node, ScalarNode)
        return _scalar(node)

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged = self._merged(value_node, depth) | merged
                continue
            key = _key(self.make(key_node, depth))
            if key in made:
                line = key_node.start_mark.line + 1
                self.complaints.append(
                    f'yaml: unmarshal errors:\n  line {line}: key "{key}" already set in map'
                )
            made[key] = self.make(value_node, depth)
        return merged | made

    def _merged(self, node: Node, depth: int) -> dict[str, Any]:
        maps = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for item in maps:
            made = self.make(item, depth)
            if not isinstance(made, dict):
                raise YamlError(
                    "error converting YAML to JSON: yaml: map merge requires map or sequence of maps as the value"
                )
            merged = made | merged
        return merged


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    if key is None:
        return "null"
    raise YamlError(f"error converting YAML to JSON: unsupported map key: {key!r}")


def _scalar(node: ScalarNode) -> Any:
    """What looks like a number and is none, or is too large for one, is a text."""
    read = _READ.get(node.tag)
    try:
        return node.value if read is None else read(node.value)
    except YamlError:
        raise
    except (ValueError, OverflowError):
        return node.value


def _integer(text: str) -> int | float:
    plain = text.replace("_", "")
    digits = plain.lstrip("+-")
    base = {"0b": 2, "0o": 8, "0x": 16}.get(
        digits[:2].lower(), 8 if len(digits) > 1 and digits[0] == "0" else 10
    )
    value = int(plain, base) if base != 8 else int(plain.replace("o", ""), 8)
    return value if -(2**63) <= value < 2**64 else float(value)


def _float(text: str) -> float:
    plain = text.replace("_", "").lower()
    if plain.endswith((".inf", ".nan")):
        raise YamlError(f"error converting YAML to JSON: json: unsupported value: {plain.lstrip('.')}")
    value = float(plain)
    if math.isinf(value):
        raise OverflowError(text)
    return value


_READ: Mapping[str, Callable[[str], Any]] = {
    _BOOL: lambda text: text.lower() in _TRUE,
    _INT: _integer,
    _FLOAT: _float,
    _NULL: lambda _: None,
}


class _Dumper(_CDumper):  # type: ignore[misc]  # PyYAML is not typed where it is compiled
    yaml_implicit_resolvers = _RESOLVERS

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - what stands twice is written twice
        return True


_QUOTED = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?"  # a date, to other readers
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # a number to the base of 60, to some
)


def _represent_text(dumper: Any, text: str) -> Any:
    """Plain where it reads back as the same text; in quotes where it would be something else; lines as lines."""
    resolvers = _RESOLVERS.get(text[:1], ())
    misread = _QUOTED.fullmatch(text) or any(pattern.match(text) for _, pattern in resolvers)
    style = '"' if misread else "|" if "\n" in text else None
    return dumper.represent_scalar(_STR, text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump(tree: Any) -> bytes:
    """Keys in order, lists not indented, as upstream writes it."""
    text: str = yaml.dump(
        tree, Dumper=_Dumper, default_flow_style=False, sort_keys=True, width=2**31 - 1, allow_unicode=True
    )
    return text.encode()
