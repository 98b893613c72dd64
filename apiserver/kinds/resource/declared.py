"""Rules that upstream declares beside the types since 1.37, and had as code before: with other messages, in another order.

Errors of declared rules follow those of the other ones. An error has those with it that its rule had before 1.37.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.declared import DeclaredRules
from mockube.apiserver.kinds.common.validation import Update, Validation

_Arrange: TypeAlias = Callable[[Iterable[FieldError]], Iterable[FieldError]]


class Declared(FieldError, frozen=True, kw_only=True):
    """The error of a declared rule."""

    older: tuple[FieldError, ...] = ()


def declared_errors(newer: Iterable[FieldError], older: Iterable[FieldError]) -> Iterator[Declared]:
    """Yield the errors of a rule. The first one has those with it that the rule had before."""
    replaced = (*older,)
    for error in newer:
        fields = {"type": error.type, "field": error.field, "value": error.value, "detail": error.detail}
        yield Declared(**fields, older=replaced)
        replaced = ()


def declare(newer: Check, older: Check | None = None) -> Check:
    """Return the check of a declared rule; `older` is that of the rule before, if its messages differ."""

    def check(value: Any, path: Path) -> Iterator[FieldError]:
        errors = [*newer(value, path)]
        return declared_errors(errors, older(value, path) if older else errors)

    return check


def without_older(field_errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Yield the errors of declared rules alone, as if there had been no rules before."""
    return (replace(error, older=()) for error in field_errors if isinstance(error, Declared))


# --- duplicates

_FIELDS: Final = (
    "apiGroup", "resource", "name", "uid",
    "driver", "pool", "device", "shareID", "conditions", "data", "networkData",
    "counterSet", "counters",
    "exactly", "firstAvailable", "deviceClassName", "selectors", "allocationMode", "count", "adminAccess",
    "tolerations", "capacity",
)  # fmt: skip
_ORDER: Final = {name: index for index, name in enumerate(_FIELDS)}
_REQUIRED_IN: Final = {
    "exactly": ("deviceClassName",),
    "firstAvailable": ("name", "deviceClassName"),
    "cel": ("expression",),
}
"""By field, the fields of its struct that are printed even if they are empty."""
_MISSING: Final[Mapping[str, Any]] = {"conditions": None}
"""What is printed for required fields that are no strings."""
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})


def describe_item(item: Any, required: Collection[str] = ()) -> Any:
    """Return an item of a list as an error of a declared rule has it: in the order of Go's fields, with required ones."""
    if isinstance(item, Mapping):
        names = sorted({*item, *required}, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
        present = [name for name in names if name in required or item[name] not in _EMPTY]
        return {
            name: describe_item(item.get(name, _MISSING.get(name, "")), _REQUIRED_IN.get(name, ()))
            for name in present
        }
    return [describe_item(each, required) for each in item] if isinstance(item, list) else item


# --- minors


def _newest(field_errors: Iterable[FieldError]) -> Iterable[FieldError]:
    """Return declared errors after the others, and duplicates before the errors of a list's items."""
    others: list[FieldError] = []
    later: list[list[FieldError]] = []
    first_of_items: dict[str, list[FieldError]] = {}
    """By list, the first error of its items, behind the duplicates of the list."""
    for error in field_errors:
        if not isinstance(error, Declared):
            others.append(error)
            continue
        place = first_of_items.get(f"{error.field.rpartition('[')[0]}[")
        if error.type is ErrorType.DUPLICATE and place is not None:
            place.insert(-1, error)
            continue
        later.append([error])
        if error.type is not ErrorType.DUPLICATE:
            for position, character in enumerate(error.field):
                if character == "[":
                    first_of_items.setdefault(error.field[: position + 1], later[-1])
    return [*others, *chain.from_iterable(later)]


def _older(field_errors: Iterable[FieldError]) -> Iterator[FieldError]:
    for error in field_errors:
        yield from error.older if isinstance(error, Declared) else (error,)


class DeclaredName(DeclaredRules):
    """The rules of a kind that declares the rule of its name, whose error is the first one of declared rules.

    That a name is missing is none of them.
    """

    def merge(
        self, field_errors: Sequence[FieldError], new: ReadOnlyTree, old: ReadOnlyTree | None = None
    ) -> list[FieldError]:
        merged = super().merge(field_errors, new, old)
        names, others = list[FieldError](), list[FieldError]()
        for error in merged:
            is_of_name = error.field == "metadata.name" and error.type is not ErrorType.REQUIRED
            (names if is_of_name else others).append(error)
        first = next((i for i, error in enumerate(others) if isinstance(error, Declared)), len(others))
        return [*others[:first], *names, *others[first:]]


def newest(validation: Validation) -> Validation:
    """Return the validation since 1.37."""
    return _arrange_errors(validation, _newest)


def older(validation: Validation) -> Validation:
    """Return the validation before 1.37."""
    return _arrange_errors(validation, _older)


def _arrange_errors(validation: Validation, arrange: _Arrange) -> Validation:
    def update(check: Update) -> Update:
        return lambda new, old: arrange(check(new, old))

    def create(tree: ReadOnlyTree) -> Iterable[FieldError]:
        return arrange(validation.create(tree))

    subresources = {name: update(check) for name, check in validation.subresources.items()}
    return replace(validation, create=create, update=update(validation.update), subresources=subresources)
