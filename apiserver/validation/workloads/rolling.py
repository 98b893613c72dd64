"""Rolling updates: how many pods may be missing or too many meanwhile, as numbers or as percentages."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import errors, gotext, names
from apimachinery.errors import FieldError
from apimachinery.intstr import IntOrString
from apimachinery.paths import Path
from apimachinery.remembered import remembered
from apiserver.validation.rules import Tree, non_negative, valid

_PERCENT: Final = valid(names.check_percent)


def check_amount(amount: IntOrString, path: Path) -> Iterable[FieldError]:
    """A number that is not negative, or a percentage."""
    return non_negative(amount, path) if isinstance(amount, int) else _PERCENT(amount, path)


def value_of(amount: IntOrString) -> int:
    """The number, of whatever; nothing if it is none."""
    return amount if isinstance(amount, int) else _number_in(amount)


@remembered(256, longest=8)
def _number_in(text: str) -> int:
    try:
        return gotext.parse_int(text if names.check_percent(text) else text.removesuffix("%"))
    except gotext.NumberError:
        return 0


def check_not_over_all(amount: IntOrString, path: Path) -> Iterable[FieldError]:
    if isinstance(amount, int) or value_of(amount) <= 100 or names.check_percent(amount):
        return ()
    return (errors.invalid(path, amount, "must not be greater than 100%"),)


def check_deployment(update: Tree, path: Path) -> Iterator[FieldError]:
    missing, surplus = update.get("maxUnavailable", 0), update.get("maxSurge", 0)
    yield from check_amount(missing, path.child("maxUnavailable"))
    yield from check_amount(surplus, path.child("maxSurge"))
    if not value_of(missing) and not value_of(surplus):
        problem = "may not be 0 when `maxSurge` is 0"
        yield errors.invalid(path.child("maxUnavailable"), missing, problem)
    yield from check_not_over_all(missing, path.child("maxUnavailable"))


def check_daemon_set(update: Tree, path: Path) -> Iterator[FieldError]:
    """A node's pod is replaced before or after its successor is there, so one of both is nothing."""
    missing, surplus = update.get("maxUnavailable", 0), update.get("maxSurge", 0)
    path_of_missing, path_of_surplus = path.child("maxUnavailable"), path.child("maxSurge")
    for check in (check_amount, check_not_over_all):
        yield from check(missing, path_of_missing)
        yield from check(surplus, path_of_surplus)
    if value_of(missing) and value_of(surplus):
        problem = "may not be set when maxUnavailable is non-zero"
        yield errors.invalid(path_of_surplus, surplus, problem)
    elif not value_of(missing) and not value_of(surplus):
        yield errors.required(path_of_missing, "cannot be 0 when maxSurge is 0")


def check_stateful_set(update: Tree, path: Path) -> Iterator[FieldError]:
    yield from non_negative(update.get("partition"), path.child("partition"))
    missing, path = update.get("maxUnavailable"), path.child("maxUnavailable")
    if missing is None:
        return
    yield from check_amount(missing, path)
    if not value_of(missing):
        yield errors.invalid(path, missing, "cannot be 0")
    yield from check_not_over_all(missing, path)
