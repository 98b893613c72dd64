"""What claims to devices and descriptions of them are made of."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.labels import check_label_name
from apiserver.validation.rules import Check, Tree, each, no_longer_than, one_of, optional, required, valid
from apiserver.validation.volumes.sources import check_driver_name

_LONGEST_ID: Final = 32
_LONGEST_POOL: Final = 253
_LONGEST_PARAMETERS: Final = 10 * 1024

check_label: Final = valid(names.check_dns1123_label)
check_subdomain: Final = valid(names.check_dns1123_subdomain)
check_driver: Final = required("driver", check_driver_name)


# --- lists


def items(limit: int, *checks: Check) -> Callable[[Sequence[Any] | None, Path], Iterator[FieldError]]:
    """A list of so many items at most. All of them are looked at before they are counted."""

    def check(values: Sequence[Any] | None, path: Path) -> Iterator[FieldError]:
        yield from each(*checks)(values, path)
        if len(values or ()) > limit:
            yield errors.too_many(path, len(values or ()), limit)

    return check


# --- names


def _check_identifier(name: str, path: Path) -> Iterator[FieldError]:
    yield from no_longer_than(_LONGEST_ID)(name, path)
    for problem in names.check_c_identifier(name):
        yield errors.type_invalid(path, name, problem)


def check_qualified_name(name: str, path: Path) -> Iterator[FieldError]:
    """An identifier, with the domain of whoever made it up if that is not the driver."""
    domain, slash, identifier = name.rpartition("/")
    if not name:
        yield errors.required(path, "name required")
        return
    if slash and not domain:
        yield errors.required(path, "the domain must not be empty")
    elif domain:
        yield from check_driver_name(domain, path)
    if not identifier:
        yield errors.required(path, "the name must not be empty")
    else:
        yield from _check_identifier(identifier, path)


def check_fully_qualified_name(name: str, path: Path) -> Iterator[FieldError]:
    yield from check_qualified_name(name, path)
    if name and "/" not in name:
        yield errors.invalid(path, name, "must include a domain")


def check_pool_name(name: str, path: Path) -> Iterator[FieldError]:
    yield from no_longer_than(_LONGEST_POOL)(name, path)
    for part in name.split("/"):
        yield from check_subdomain(part, path)


# --- taints

check_effect: Final = one_of("NoExecute", "NoSchedule")
_LABEL_VALUE: Final = valid(names.check_label_value)


def _check_tolerated(toleration: Tree, path: Path) -> Iterable[FieldError]:
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator == "Equal":
        return _LABEL_VALUE(value, path.child("value"))
    if operator == "Exists":
        problem = "must be empty for operator `Exists`"
        return (errors.invalid(path.child("value"), value, problem),) if value else ()
    return required("operator", one_of("Equal", "Exists"))(toleration, path)


def check_toleration(toleration: Tree, path: Path) -> Iterator[FieldError]:
    yield from optional("key", check_label_name)(toleration, path)
    yield from _check_tolerated(toleration, path)
    yield from optional("effect", check_effect)(toleration, path)


# --- parameters that drivers alone understand


def check_parameters(parameters: Any, path: Path) -> Iterable[FieldError]:
    if parameters is None:
        return (errors.required(path),)
    if not isinstance(parameters, dict):
        return (errors.invalid(path, "<value omitted>", "parameters must be a valid JSON object"),)
    if len(orjson.dumps(parameters)) > _LONGEST_PARAMETERS:
        return (errors.too_long(path, _LONGEST_PARAMETERS),)
    return ()
