"""Validators of checked expressions: literal durations, timestamps and patterns, mixed lists and maps, and formats."""

from collections.abc import Iterator

from mockube.apimachinery.regexp import matcher
from mockube.apimachinery.regexp.errors import RegexpError

from .ast import Call, Comprehension, CreateList, CreateMap, CreateStruct, Expr, Literal, Select
from .conversions import FUNCTIONS
from .libraries.formatting import WRONG_TYPE, FormatError, interpolate
from .source import Issue
from .types import Type
from .values import CelError

_LITERALS = ("duration", "timestamp", "matches")


def validate(expr: Expr, *, checks_literals: bool = True) -> list[Issue]:
    nodes = list(_walk(expr, is_in_format=False))
    issues: list[Issue] = []
    for function in _LITERALS if checks_literals else ():
        issues += _literal_arguments(function, [node for node, _ in nodes])
    nodes_outside_format = [node for node, is_in_format in nodes if not is_in_format]
    issues += [
        issue for node in nodes_outside_format if isinstance(node, CreateList) for issue in _mixed_list(node)
    ]
    issues += [
        issue for node in nodes_outside_format if isinstance(node, CreateMap) for issue in _mixed_map(node)
    ]
    for node, _ in nodes:
        if isinstance(node, Call) and node.function == "format":
            issues += _format(node)
    return issues


def children(node: Expr) -> list[Expr]:
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return [*([node.target] if node.target is not None else []), *node.args]
    if isinstance(node, CreateList):
        return node.elements
    if isinstance(node, CreateMap):
        return [part for entry in node.entries for part in (entry.key, entry.value)]
    if isinstance(node, CreateStruct):
        return [entry.value for entry in node.entries]
    if isinstance(node, Comprehension):
        return [node.range, node.init, node.condition, node.step, node.result]
    return []


def _walk(expr: Expr, *, is_in_format: bool) -> Iterator[tuple[Expr, bool]]:
    """Yield each node once, and whether it is in a call of `format`, where lists may be mixed."""
    visited: set[int] = set()
    stack = [(expr, is_in_format)]
    while stack:
        node, is_in_format = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        yield node, is_in_format
        is_in_format = is_in_format or (isinstance(node, Call) and node.function == "format")
        stack += [(child, is_in_format) for child in reversed(children(node))]


def _literal_arguments(function: str, nodes: list[Expr]) -> Iterator[Issue]:
    for node in nodes:
        if not isinstance(node, Call) or node.function != function or not node.args:
            continue
        argument = node.args[0]
        if isinstance(argument, Literal) and not _is_valid(function, argument.value):
            yield Issue(argument.offset, f"invalid {function} argument")


def _is_valid(function: str, value: object) -> bool:
    if value is None:  # the checker accepts null as a timestamp or duration
        return False
    try:
        if function != "matches":
            convert = FUNCTIONS[f"int64_to_{function}" if type(value) is int else f"string_to_{function}"]
            convert(value)
        elif isinstance(value, str):
            matcher.check(value)
    except (CelError, RegexpError):
        return False
    return True


def _equivalent(left: Type, right: Type) -> bool:
    if left.kind != right.kind or len(left.parameters) != len(right.parameters):
        return False
    if left.kind != "param" and left.name != right.name:
        return False
    return all(map(_equivalent, left.parameters, right.parameters))


def _mismatch(node: Expr, expected: Type, actual: Type) -> Issue:
    return Issue(node.offset, f"expected type '{expected}' but found '{actual}'")


def _element_type(node: Expr, *, optional: bool) -> Type:
    return node.type.parameters[0] if optional and node.type.parameters else node.type


def _mixed_list(node: CreateList) -> Iterator[Issue]:
    expected: Type | None = None
    for i, element in enumerate(node.elements):
        actual = _element_type(element, optional=i in node.optional)
        if expected is None:
            expected = actual
        elif not _equivalent(expected, actual):
            yield _mismatch(element, expected, actual)
            return


def _mixed_map(node: CreateMap) -> Iterator[Issue]:
    if not node.entries:
        return
    first = node.entries[0]
    key_type, value_type = first.key.type, _element_type(first.value, optional=first.optional)
    for entry in node.entries[1:]:
        if not _equivalent(key_type, entry.key.type):
            yield _mismatch(entry.key, key_type, entry.key.type)
        actual = _element_type(entry.value, optional=entry.optional)
        if not _equivalent(value_type, actual):
            yield _mismatch(entry.value, value_type, actual)


_STRING_KINDS = [
    "list",
    "map",
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "timestamp",
    "bytes",
    "duration",
    "type",
    "null",
]
_KINDS: dict[str, tuple[str, ...]] = {
    "s": tuple(_STRING_KINDS),
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}


def _format(node: Call) -> Iterator[Issue]:
    """Check a literal format with the types of the elements of a literal list."""
    target, args = node.target, node.args
    if not isinstance(target, Literal) or not isinstance(target.value, str):
        return
    if len(args) != 1 or not isinstance(args[0], CreateList):
        return
    elements = args[0].elements

    def check(letter: str, _digits: int, index: int) -> str:
        mismatched = _wrong_argument(letter.lower(), elements[index])
        if mismatched is not None:
            raise FormatError(WRONG_TYPE[letter.lower()].format(mismatched.type.name), mismatched)
        return ""

    try:
        argument_count = interpolate(target.value, len(elements), check)[1]
    except FormatError as error:
        location_node = error.argument if isinstance(error.argument, Expr) else node
        yield Issue(location_node.offset, str(error))
        return
    if len(elements) > argument_count:
        yield Issue(
            node.offset,
            f"too many arguments supplied to string.format (expected {argument_count}, got {len(elements)})",
        )


def _wrong_argument(letter: str, node: Expr) -> Expr | None:
    if node.type.kind != "dyn" and node.type.kind not in _KINDS[letter]:
        return node
    if letter == "s" and isinstance(node, (CreateList, CreateMap)):
        return next(filter(None, (_wrong_argument("s", child) for child in children(node))), None)
    return None
