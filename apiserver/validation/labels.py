"""Labels, and selectors of them, as they stand in objects."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apimachinery.remembered import remembered
from apiserver.validation.rules import Check, Tree, each, every, field, valid

_KEYS: Final = 4096
_LONGEST_KEY: Final = 128
"""Keys of labels that are remembered: objects share a few."""

check_label_name: Final = valid(remembered(_KEYS, longest=_LONGEST_KEY)(names.check_label_key))
_check_label_value: Final = valid(names.check_label_value)

NO_OPERATOR: Final = "not a valid selector operator"

_WITH_VALUES: Final = frozenset({"In", "NotIn"})
_WITHOUT_VALUES: Final = frozenset({"Exists", "DoesNotExist"})


def check_labels(labels: Tree | None, path: Path) -> Iterator[FieldError]:
    for key, value in (labels or {}).items():
        yield from check_label_name(key, path)
        yield from _check_label_value(value, path)


def check_operator(requirement: Tree, path: Path) -> Iterable[FieldError]:
    """Refuse an operator that there is none of, or that does not go with the values."""
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in _WITH_VALUES:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return () if values else (errors.required(path.child("values"), detail),)
    if operator in _WITHOUT_VALUES:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return (errors.forbidden(path.child("values"), detail),) if values else ()
    return (errors.invalid(path.child("operator"), operator, NO_OPERATOR),)


def _selector(*of_values: Check) -> Check:
    requirement = every(check_operator, field("key", check_label_name, absent=""), *of_values)
    return every(field("matchLabels", check_labels), field("matchExpressions", each(requirement)))


check_selector: Final = _selector(field("values", each(_check_label_value)))
"""A `LabelSelector` that is there."""

check_selector_leniently: Final = _selector()
"""One that may ask for values that no label can have: those in old objects were not looked at."""


def has_wrong_values(selector: Tree) -> bool:
    """Whether a selector's expressions ask for values that no label can have."""
    values = (value for one in selector.get("matchExpressions", ()) for value in one.get("values", ()))
    return any(names.check_label_value(value) for value in values)
