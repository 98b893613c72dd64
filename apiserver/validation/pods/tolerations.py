"""Taints of nodes that a pod tolerates."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from apimachinery import errors, gotext, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.labels import check_label_name
from apiserver.validation.rules import Tree, each, one_of, optional

EQUAL, EXISTS = "Equal", "Exists"
COMPARISONS: Final = ("Lt", "Gt")

_NO_EXECUTE: Final = "NoExecute"

check_effect: Final = one_of("NoSchedule", "PreferNoSchedule", _NO_EXECUTE)


def _check_needs(toleration: Tree, path: Path) -> Iterator[FieldError]:
    """What one field means for another."""
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if not toleration.get("key") and operator != EXISTS:
        problem = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield errors.invalid(path.child("operator"), operator, problem)
    if toleration.get("tolerationSeconds") is not None and effect != _NO_EXECUTE:
        problem = f"effect must be '{_NO_EXECUTE}' when `tolerationSeconds` is set"
        yield errors.invalid(path.child("effect"), effect, problem)


def _check_equal(value: str, path: Path) -> Iterator[FieldError]:
    problems = names.check_label_value(value)
    if problems:
        yield errors.invalid(path.child("operator"), value, ";".join(problems))


def _check_exists(value: str, path: Path) -> Iterator[FieldError]:
    if value:
        problem = f"value must be empty when `operator` is '{EXISTS}'"
        yield errors.invalid(path.child("operator"), value, problem)


def _check_compared(value: str, path: Path) -> Iterator[FieldError]:
    """A number as people write it."""
    path = path.child("value")
    if not value:
        yield errors.invalid(path, value, names.EMPTY)
    elif not re.fullmatch("0|-?[1-9][0-9]*", value):
        problem = "must be a valid decimal integer in canonical form"
        yield errors.invalid(path, value, problem)
    try:
        gotext.parse_int(value)
    except gotext.NumberError as problem:
        yield errors.invalid(path, value, str(problem))


_OPERATORS: Final[Mapping[str, Callable[[str, Path], Iterator[FieldError]]]] = {
    "": _check_equal,
    EQUAL: _check_equal,
    EXISTS: _check_exists,
    **dict.fromkeys(COMPARISONS, _check_compared),
}


def _check_operator(toleration: Tree, path: Path, *, compared: bool) -> Iterable[FieldError]:
    operator = toleration.get("operator", "")
    if operator in COMPARISONS and not compared:
        supported = (EQUAL, EXISTS, *COMPARISONS)
        return (errors.not_supported(path.child("operator"), operator, supported),)
    if operator not in _OPERATORS:
        return (errors.not_supported(path.child("operator"), operator, (EQUAL, EXISTS)),)
    return _OPERATORS[operator](toleration.get("value", ""), path)


_CHECKS: Final = {
    compared: each(
        optional("key", check_label_name),
        _check_needs,
        partial(_check_operator, compared=compared),
        optional("effect", check_effect),
    )
    for compared in (False, True)
}


def check_tolerations(tolerations: Sequence[Tree], path: Path, *, compared: bool) -> Iterable[FieldError]:
    """`compared`: values may be compared as numbers, which no new pod may do yet."""
    return _CHECKS[compared](tolerations, path)
