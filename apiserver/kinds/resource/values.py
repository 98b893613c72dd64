"""Validation of names, lists, tolerations and parameters in claims, classes and slices."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final

import orjson
from msgspec.structs import replace

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import (
    Check,
    all_of,
    each_item,
    max_bytes,
    one_of,
    optional,
    report,
    require,
)
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.core.volumes.sources import check_driver_name

from .declared import declare, declared_errors, describe_item

_MAX_ID_LENGTH: Final = 32
_MAX_POOL_LENGTH: Final = 253
_MAX_DRIVER_LENGTH: Final = 63
_NOT_QUALIFIED: Final = "a fully qualified name must be a domain and a name separated by a slash"
_CASELESS: Final = (
    ("a lowercase RFC", "an RFC"),
    ("lower case alphanumeric", "alphanumeric"),
    ("'example", "'Example"),
)
"""What differs in the message of a name in any case."""
_MAX_PARAMETERS_LENGTH: Final = 10 * 1024

check_label: Final = report(names.check_dns1123_label)
check_subdomain: Final = report(names.check_dns1123_subdomain)
check_driver: Final = require("driver", check_driver_name)


def _in_bytes(check: Callable[[str, str], list[str]]) -> Check:
    return report(lambda name: check(name, names.BYTES))


def _check_caseless_driver(name: str, path: Path) -> Iterator[FieldError]:
    for problem in names.check_dns1123_subdomain(name.lower(), names.BYTES):
        text = reduce(lambda text, change: text.replace(*change, 1), _CASELESS, problem)
        yield errors.invalid(path, name, text)
    if len(name) > _MAX_DRIVER_LENGTH:
        yield errors.too_long(path, _MAX_DRIVER_LENGTH, "character")


_LABEL_IN_BYTES: Final = _in_bytes(names.check_dns1123_label)
declared_label: Final = declare(_LABEL_IN_BYTES, check_label)


def declared_name_of(field: str) -> Check:
    """Return the check of a field that is a label and must be present."""
    return declare(require(field, _LABEL_IN_BYTES), require(field, check_label))


declared_class_name: Final = declare(
    require("deviceClassName", _in_bytes(names.check_dns1123_subdomain)),
    require("deviceClassName", check_subdomain),
)
declared_driver: Final = declare(require("driver", _check_caseless_driver), check_driver)


# --- uids

_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_PREFIX: Final = "urn:uuid:"
_NOT_NORMAL: Final = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)


def check_uid(uid: str, path: Path) -> Iterable[FieldError]:
    """Check a uid, which Go's library accepts in more forms than upstream does."""
    if _UID.fullmatch(uid):
        return () if uid == uid.lower() else (errors.invalid(path, uid, _NOT_NORMAL),)
    problem = _uid_problem(uid)
    return (errors.invalid(path, uid, f"error validating uid: {problem}" if problem else _NOT_NORMAL),)


def _check_uuid(uid: str, path: Path) -> Iterable[FieldError]:
    if _UID.fullmatch(uid) and uid == uid.lower():
        return ()
    return (errors.invalid(path, uid, "must be a lowercase UUID in 8-4-4-4-12 format"),)


declared_uid: Final = declare(_check_uuid, check_uid)


def _uid_problem(uid: str) -> str:
    """Return the library's error about a uid that is not in the usual form, "" if there is none."""
    length = len(uid.encode())
    if length == 45:
        if uid[:9].lower() != _PREFIX:
            return f"invalid urn prefix: {quote(uid[:9])}"
        uid = uid[9:]
    elif length == 38:
        if not (uid.startswith("{") and uid.endswith("}")):
            return "invalid bracketed UUID format"
        uid = uid[1:-1]
    elif length == 32:
        uid = "-".join((uid[:8], uid[8:12], uid[12:16], uid[16:20], uid[20:]))
    elif length != 36:
        return f"invalid UUID length: {length}"
    return "" if _UID.fullmatch(uid) else "invalid UUID format"


# --- lists


def items(
    limit: int, *checks: Check, key: Callable[[Any], object] | None = None
) -> Callable[[Sequence[Any] | None, Path], Iterator[FieldError]]:
    """Return the check of a list of at most `limit` items, and of unique keys. Items of a longer list are not checked."""
    check_each = each_item(*checks)

    def check(values: Sequence[Any] | None, path: Path) -> Iterator[FieldError]:
        if len(values or ()) > limit:
            yield errors.too_many(path, len(values or ()), limit)
            return
        yield from check_each(values, path)
        for _, error in _duplicates(values or (), path, key):
            yield error

    return check


def declared_items(
    limit: int,
    *checks: Check,
    key: Callable[[Any], object] | None = None,
    required: Collection[str] = (),
) -> Callable[[Sequence[Any] | None, Path], Iterator[FieldError]]:
    """Return the check of a list whose limit and uniqueness upstream declares.

    Errors of duplicates contain the `required` fields of an item, even if they are empty.
    """
    check_each = each_item(*checks)

    def check(values: Sequence[Any] | None, path: Path) -> Iterator[FieldError]:
        if len(values or ()) > limit:
            error = errors.too_many(path, len(values or ()), limit)
            yield from declared_errors([error], [error])
            return
        yield from check_each(values, path)
        for index, error in _duplicates(values or (), path, key):
            item = describe_item((values or ())[index], required)
            yield from declared_errors([replace(error, value=item)], [error])

    return check


def _duplicates(
    values: Sequence[Any], path: Path, key: Callable[[Any], object] | None
) -> Iterator[tuple[int, FieldError]]:
    seen = set()
    for index, value in enumerate(values) if key else ():
        item_key = key(value) if key else None
        if item_key in seen:
            yield index, errors.duplicate(path.index(index), item_key)
        seen.add(item_key)


def item_value(item: Any) -> object:
    """Return an item of a set of texts, as its key."""
    return item


def item_name(item: ReadOnlyTree) -> object:
    """Return the name of an item of a set, as its key."""
    return item.get("name", "")


def entries(limit: int | None, check_key: Check, check_value: Check) -> Check:
    """Return the check of a map, whose key errors are reported at the map's path."""

    def check(values: ReadOnlyTree | None, path: Path) -> Iterator[FieldError]:
        if limit is not None and len(values or ()) > limit:
            yield errors.too_many(path, len(values or ()), limit)
            return
        for key, value in (values or {}).items():
            yield from check_key(key, path)
            yield from check_value(value, path.key(key))

    return check


# --- names


def _check_identifier(name: str, path: Path) -> Iterator[FieldError]:
    yield from max_bytes(_MAX_ID_LENGTH)(name, path)
    for problem in names.check_c_identifier(name):
        yield errors.invalid(path, name, problem)


def check_qualified_name(name: str, path: Path) -> Iterator[FieldError]:
    """Check an identifier, which may have the prefix of a domain."""
    match name.split("/"):
        case [identifier]:
            yield from _check_identifier(identifier, path)
        case [domain, identifier]:
            if domain:
                yield from check_driver_name(domain, path)
            else:
                yield errors.invalid(path, "", "the domain must not be empty")
            if identifier:
                yield from _check_identifier(identifier, path)
            else:
                yield errors.invalid(path, "", "the name must not be empty")
        case _:  # upstream accepts several slashes
            return


def check_fully_qualified_name(name: str, path: Path) -> Iterator[FieldError]:
    yield from check_qualified_name(name, path)
    if "/" not in name:
        yield errors.invalid(path, name, _NOT_QUALIFIED)


def _check_declared_identifier(name: str, path: Path) -> Iterator[FieldError]:
    if len(name.encode()) > _MAX_ID_LENGTH:
        yield errors.too_long(path, _MAX_ID_LENGTH)
    for problem in names.check_c_identifier(name):
        yield errors.invalid(path, name, problem)


def _check_declared_name(name: str, path: Path) -> Iterator[FieldError]:
    match name.split("/"):
        case [identifier]:
            yield from _check_declared_identifier(identifier, path)
            yield errors.invalid(path, name, _NOT_QUALIFIED)
        case [prefix, identifier]:
            if not prefix:
                yield errors.invalid(path, "", "prefix must not be empty")
            if len(prefix.encode()) > _MAX_DRIVER_LENGTH:
                yield errors.too_long(path, _MAX_DRIVER_LENGTH)
            for problem in names.check_dns1123_subdomain(prefix, names.BYTES) if prefix else ():
                yield errors.invalid(path, prefix, f"prefix: {problem}")
            if identifier:
                yield from _check_declared_identifier(identifier, path)
            else:
                yield errors.invalid(path, "", "name must not be empty")
        case _:  # upstream accepts several slashes
            return


declared_name: Final = declare(_check_declared_name, check_fully_qualified_name)
newly_declared_name: Final = declare(_check_declared_name, lambda _name, _path: ())


def _check_declared_pool(name: str, path: Path) -> Iterator[FieldError]:
    if len(name.encode()) > _MAX_POOL_LENGTH:
        yield errors.too_long(path, _MAX_POOL_LENGTH)
    for index, part in enumerate(name.split("/")):
        if not part:
            yield errors.invalid(path, name, f"segment {index}: must not be empty")
            continue
        for problem in names.check_dns1123_subdomain(part, names.BYTES):
            yield errors.invalid(path, part, f"segment {index}: {problem}")


def check_pool_name(name: str, path: Path) -> Iterator[FieldError]:
    yield from max_bytes(_MAX_POOL_LENGTH)(name, path)
    for part in name.split("/"):
        yield from check_subdomain(part, path)


declared_pool: Final = declare(require("pool", _check_declared_pool), require("pool", check_pool_name))


# --- taints

check_effect: Final = one_of("NoExecute", "NoSchedule", "None")
_LABEL_VALUE: Final = report(names.check_label_value)


def _check_tolerated(toleration: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator == "Equal":
        return _LABEL_VALUE(value, path.child("value"))
    if operator == "Exists":
        problem = "must be empty for operator `Exists`"
        return (errors.invalid(path.child("value"), value, problem),) if value else ()
    return declare(require("operator", one_of("Equal", "Exists")))(toleration, path)


check_toleration: Final = all_of(
    declare(optional("key", check_label_name)),
    _check_tolerated,
    declare(optional("effect", check_effect)),
)


# --- opaque parameters of drivers


def check_parameters(parameters: Any, path: Path) -> Iterable[FieldError]:
    if parameters is None:
        return (errors.required(path),)
    if len(orjson.dumps(parameters)) > _MAX_PARAMETERS_LENGTH:
        return (errors.too_long(path, _MAX_PARAMETERS_LENGTH),)
    if not isinstance(parameters, dict):
        return (errors.invalid(path, "<value omitted>", "must be a valid JSON object"),)
    return ()
