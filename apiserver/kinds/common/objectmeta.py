"""Validate the metadata of objects: names by the rule of their kind, other fields by the same rules for all kinds.

The caller passes the rule of names, and whether the kind has namespaces.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import errors, gotext, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree

from . import checks

STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def _check_domain(finalizer: str) -> list[str]:
    if "/" in finalizer or finalizer in STANDARD_FINALIZERS:
        return []
    return ["name is neither a standard finalizer name nor is it fully qualified"]


class NameRule(NamedTuple):
    """The checks of names in metadata: name, generateName and finalizers."""

    check_full: Callable[[str], list[str]]
    beginning: Callable[[str], list[str]]
    """Checks a generateName, to which a suffix will be added."""
    finalizer: Callable[[str], list[str]] = _check_domain
    """Checks a finalizer that is a qualified name."""


METADATA: Final = ROOT.child("metadata")

_MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
_MAX_MANAGER_LENGTH: Final = 128
_MAX_SUBRESOURCE_LENGTH: Final = 256


def named_by(check_full: Callable[[str], list[str]]) -> NameRule:
    """Return the rule of names with a check of whole names, which also checks generateName."""
    return NameRule(check_full, lambda name: check_full(names.mask_trailing_dash(name)))


def checked_by_full_name(check_full: Callable[[str], list[str]]) -> NameRule:
    """Return the rule of kinds that check whole names only, and not generateName."""
    return NameRule(check_full, lambda _beginning: [])


SUBDOMAIN: Final = named_by(names.check_dns1123_subdomain)
LABEL: Final = named_by(names.check_dns1123_label)
PATH_SEGMENT: Final = NameRule(names.check_path_segment_name, names.check_path_segment_prefix)


def with_any_finalizers(rule: NameRule) -> NameRule:
    """Return the rule of the few kinds whose finalizers need no domain."""
    return rule._replace(finalizer=lambda _finalizer: [])


ANY_NAME: Final = with_any_finalizers(PATH_SEGMENT)
"""The rule for names of every kind."""


def check(tree: ReadOnlyTree, rule: NameRule, *, namespaced: bool, path: Path = METADATA) -> list[FieldError]:
    """Return the errors of the metadata of an object that is written."""
    of = meta.metadata(tree)
    check_namespace = _check_namespace if namespaced else _check_no_namespace
    field_errors = [*check_name(tree, rule, path), *check_namespace(of, path), *_CHECK(of, path)]
    return [*field_errors, *check_finalizers(tree, rule, path)]


def check_name(tree: ReadOnlyTree, rule: NameRule, path: Path = METADATA) -> list[FieldError]:
    of = meta.metadata(tree)
    base, name = of.get("generateName"), of.get("name")
    field_errors = _invalid_errors(rule.beginning, base, path, "generateName") if base else []
    if not name:
        return [*field_errors, errors.required(path.child("name"), "name or generateName is required")]
    return field_errors + _invalid_errors(rule.check_full, name, path, "name")


def _invalid_errors(
    problems: Callable[[str], list[str]], name: str, path: Path, step: str
) -> list[FieldError]:
    return [errors.invalid(path.child(step), name, problem) for problem in problems(name)]


_check_namespace: Final = checks.require("namespace", checks.report(names.check_dns1123_label))
_check_no_namespace: Final = checks.optional("namespace", checks.refuse_any("not allowed on this type"))


# --- labels

_MAX_CACHED_KEYS: Final = 4096
_MAX_KEY_LENGTH: Final = 128
"""The number and length of label keys whose results are cached: objects share few keys."""

check_label_name: Final = checks.report(
    memoize(_MAX_CACHED_KEYS, max_length=_MAX_KEY_LENGTH)(names.check_label_key)
)
check_label_value: Final = checks.report(names.check_label_value)


def check_labels(labels: ReadOnlyTree | None, path: Path) -> Iterator[FieldError]:
    for key, value in (labels or {}).items():
        yield from check_label_name(key, path)
        yield from check_label_value(value, path)


# --- annotations


def check_annotations(annotations: Mapping[str, str] | None, path: Path) -> Iterator[FieldError]:
    for key in annotations or ():
        for problem in names.check_label_key(key.lower()):
            yield errors.invalid(path, key, problem)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in (annotations or {}).items())
    if size > _MAX_ANNOTATIONS_BYTES:
        yield errors.too_long(path, _MAX_ANNOTATIONS_BYTES)


# --- owners


NOT_EMPTY: Final = "must not be empty"
NO_VERSION: Final = "must be <group>/<version> or <version>"


def _check_version(version: str, path: Path) -> Iterable[FieldError]:
    """Refuse an apiVersion without a version, or with several slashes."""
    if version.count("/") > 1 or not version.rpartition("/")[2]:
        return (errors.invalid(path, version, NO_VERSION),)
    return ()


_MAX_OWNER_LENGTH: Final = 1024
"""The maximum of characters of an owner in an error, because there may be as many errors as owners."""

_BANNED: Final = frozenset({("v1", "Event")})


def _check_banned(owner: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
    if (version, kind) not in _BANNED:
        return ()
    return (errors.invalid(path, owner, f"/{version}, Kind={kind} is disallowed from being an owner"),)


_CHECK_OWNER: Final = checks.all_of(
    checks.require("apiVersion", _check_version, detail=NOT_EMPTY),
    *(checks.require(name, detail=NOT_EMPTY) for name in ("kind", "name", "uid")),
    _check_banned,
)


def _check_owners(owners: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    """Check owner references. The error for a second controller has all references as its value, as upstream's."""
    first = ""
    for index, owner in enumerate(owners or ()):
        yield from _CHECK_OWNER(owner, path.index(index))
        if not owner.get("controller"):
            continue
        controller = errors.shorten(f"{owner.get('kind', '')}/{owner.get('name', '')}", _MAX_OWNER_LENGTH)
        if first:
            problem = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {first} and {controller}'
            )
            yield errors.invalid(path, owners, problem)
        first = first or controller


# --- finalizers


_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"


def _check_finalizers(finalizers: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    present = finalizers or ()
    for finalizer in present:
        yield from (errors.invalid(path, finalizer, problem) for problem in names.check_label_key(finalizer))
    if _ORPHAN in present and _FOREGROUND in present:
        yield errors.invalid(path, present, f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")


def _check_no_new_finalizers(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    added = sorted({*new.get("finalizers", ())} - {*old.get("finalizers", ())})
    if not added:
        return ()
    finalizer_names = ", ".join(map(gotext.quote, added))
    problem = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{finalizer_names}}}"
    )
    return (errors.forbidden(path.child("finalizers"), problem),)


def check_finalizers(tree: ReadOnlyTree, rule: NameRule, path: Path = METADATA) -> Iterable[FieldError]:
    finalizers = meta.metadata(tree).get("finalizers")
    return (
        checks.each_item(checks.report(rule.finalizer))(finalizers, path.child("finalizers"))
        if finalizers
        else ()
    )


# --- managed fields


def check_printable(manager: str, path: Path) -> Iterable[FieldError]:
    """Refuse characters that are not printable in the name of a field manager, in metadata or in a query."""
    return () if manager.isprintable() else _unprintable(manager, path)


def _unprintable(manager: str, path: Path) -> Iterator[FieldError]:
    position = 0
    for character in manager:
        if not character.isprintable():
            problem = f"invalid character U+{ord(character):04X} (at position {position})"
            yield errors.invalid(path, manager, problem)
        position += len(character.encode())


_OPERATIONS: Final = ("Apply", "Update")
_FIELDS_TYPES: Final = frozenset({"", "FieldsV1"})


def _check_managed(entry: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check an entry of managed fields. Every write checks each twice, so this is one function without inner checks."""
    operation, fields_type = entry.get("operation") or "", entry.get("fieldsType") or ""
    manager, subresource = entry.get("manager") or "", entry.get("subresource") or ""
    if not operation:
        yield errors.required(path.child("operation"), NOT_EMPTY)
    elif operation not in _OPERATIONS:
        yield errors.not_supported(path.child("operation"), operation, _OPERATIONS)
    if fields_type not in _FIELDS_TYPES:
        yield errors.invalid(path.child("fieldsType"), fields_type, "must be `FieldsV1`")
    if len(manager.encode()) > _MAX_MANAGER_LENGTH:
        yield errors.too_long(path.child("manager"), _MAX_MANAGER_LENGTH)
    if not manager.isprintable():
        yield from _unprintable(manager, path.child("manager"))
    if len(subresource.encode()) > _MAX_SUBRESOURCE_LENGTH:
        yield errors.too_long(path.child("subresource"), _MAX_SUBRESOURCE_LENGTH)


_CHECK: Final = checks.all_of(
    checks.field("generation", checks.non_negative),
    checks.field("labels", check_labels),
    checks.field("annotations", check_annotations),
    checks.field("ownerReferences", _check_owners),
    checks.field("finalizers", _check_finalizers),
    checks.field("managedFields", checks.each_item(_check_managed)),
)


# --- changes

_IMMUTABLE: Final = (
    "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip

_CHECK_UPDATE: Final = checks.all_of(
    checks.field("labels", check_labels),
    checks.field("annotations", check_annotations),
    checks.field("ownerReferences", _check_owners),
    checks.field("managedFields", checks.each_item(_check_managed)),
)


def check_update(new: ReadOnlyTree, old: ReadOnlyTree, *, path: Path = METADATA) -> list[FieldError]:
    """Check updated metadata. Some errors repeat those of `check`, as upstream's do."""
    return [*check_step(new, old, path=path), *_CHECK_UPDATE(meta.metadata(new), path)]


def check_step(new_tree: ReadOnlyTree, old_tree: ReadOnlyTree, *, path: Path = METADATA) -> list[FieldError]:
    """Check that an update does not change immutable metadata."""
    new, old = meta.metadata(new_tree), meta.metadata(old_tree)
    field_errors: list[Any] = []
    if old.get("deletionTimestamp"):
        field_errors += _check_no_new_finalizers(new, old, path)
    if new.get("generation", 0) < old.get("generation", 0):
        field_errors.append(
            errors.invalid(path.child("generation"), new.get("generation", 0), "must not be decremented")
        )
    for name in _IMMUTABLE:
        if new.get(name) != old.get(name):
            field_errors += checks.immutable(new.get(name), old.get(name), path.child(name))
    return field_errors


def check_change(new: ReadOnlyTree, old: ReadOnlyTree, rule: NameRule) -> list[FieldError]:
    """Check a change of metadata for one kind."""
    return [*check_update(new, old), *check_finalizers(new, rule)]
