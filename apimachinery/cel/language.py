"""The functions, macros and types that new expressions cannot use in older minor releases.

A minor release accepts in new expressions the features of the release before, so that a cluster can be downgraded by one
release. Stored expressions can use all features.
"""

from functools import cache
from typing import Final

from msgspec import Struct

from mockube.apimachinery.schema import minors

from .declarations import Functions
from .libraries import addresses, formats, lists, semver, sets
from .macros import MACROS, Macros

_COMPREHENSIONS: Final = frozenset(
    key
    for key in MACROS
    if key[0].startswith("transform")
    or key[0] == "existsOne"
    or key in {(name, 3, True) for name in ("all", "exists", "exists_one")}
)
"""The macros with two variables."""


class _Addition(Struct, frozen=True):
    """The features that new expressions can use since a minor release."""

    since: str
    overloads: frozenset[str] = frozenset()
    macros: frozenset[tuple[str, int, bool]] = frozenset()
    types: frozenset[str] = frozenset()
    checks_literals: bool = False


def _ids(declared: Functions) -> frozenset[str]:
    return frozenset(overload.id for overloads in declared.values() for overload in overloads)


_ADDITIONS: Final = (
    _Addition(
        "1.30", frozenset({"string_format", "strings_quote"}) | _ids(sets.DECLARED), checks_literals=True
    ),
    _Addition("1.31", _ids(addresses.DECLARED), types=frozenset({"net.IP", "net.CIDR"})),
    _Addition(
        "1.32", frozenset({"authorizer_fieldselector", "authorizer_labelselector"}) | _ids(formats.DECLARED)
    ),
    _Addition(
        "1.33",
        frozenset({"list_first", "list_last", "optional_unwrap", "optional_unwrapOpt"})
        | frozenset({"@mapInsert_map_key_value", "@mapInsert_map_map"}),
        _COMPREHENSIONS,
    ),
    _Addition("1.34", _ids(semver.DECLARED)),
    _Addition("1.35", _ids(lists.EXTENSION), frozenset({("sortBy", 2, True)})),
)


class Language(Struct, frozen=True):
    """The features that new expressions cannot use."""

    overloads: frozenset[str] = frozenset()
    macros: frozenset[tuple[str, int, bool]] = frozenset()
    types: frozenset[str] = frozenset()
    checks_literals: bool = True
    """Whether literal durations, timestamps and patterns are validated."""
    limits_names: bool = True
    """Whether the names of objects have a greatest length when costs are estimated."""

    def functions_of(self, declared: Functions) -> Functions:
        if not self.overloads:
            return declared
        remaining = {
            name: tuple(overload for overload in overloads if overload.id not in self.overloads)
            for name, overloads in declared.items()
        }
        return {name: overloads for name, overloads in remaining.items() if overloads}

    def macros_of(self, macros: Macros) -> Macros:
        if not self.macros:
            return macros
        return {key: macro for key, macro in macros.items() if key not in self.macros}


_REMOVED: Final = frozenset({"int64_to_duration"})
"""The functions that 1.37 does not have any more."""
FULL_LANGUAGE: Final = Language(_REMOVED)


@cache
def language_of(minor: str) -> Language:
    """Return the language of new expressions in a minor release."""
    later = [addition for addition in _ADDITIONS if minors.is_before(minor, addition.since)]
    is_newest = not minors.is_before(minor, "1.37")
    if not later:
        return FULL_LANGUAGE if is_newest else Language(limits_names=False)
    return Language(
        frozenset().union(*(addition.overloads for addition in later)),
        frozenset().union(*(addition.macros for addition in later)),
        frozenset().union(*(addition.types for addition in later)),
        not any(addition.checks_literals for addition in later),
        is_newest,
    )
