"""ConfigMap and Secret."""

import base64
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import count, text
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.validation import (
    Create,
    Update,
    Validation,
    as_created,
    immutable_fields,
    in_order,
)
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.negotiation import MediaType
from mockube.apiserver.wire.parse import UnreadableBody, parse
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_MAX_BYTES: Final = 1024 * 1024

_DATA: Final = ROOT.child("data")


def _size(content: str | None) -> int:
    """Return the decoded size of a base64 text, which may be null in a map."""
    return len(content) // 4 * 3 - content.count("=") if content else 0


_IMMUTABLE: Final = "field is immutable when `immutable` is set"


def _check_immutable(*fields: str) -> Update:
    """Return the check that an immutable object does not change and stays immutable.

    Upstream sets `data` of a ConfigMap by default. An empty map in another field is a change if there was none.
    """

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
        if not old.get("immutable"):
            return
        if not new.get("immutable"):
            yield errors.forbidden(ROOT.child("immutable"), _IMMUTABLE)
        for name in fields:
            if new.get(name) != old.get(name):
                yield errors.forbidden(ROOT.child(name), _IMMUTABLE)

    return update


def _check_keys(values: Iterable[str], path: Path) -> Iterator[FieldError]:
    for key in values:
        for problem in names.check_config_map_key(key):
            yield errors.invalid(path.key(key), key, problem)


# --- ConfigMap

_BINARY_DATA: Final = ROOT.child("binaryData")


def _check_no_duplicates(data: ReadOnlyTree, binary: ReadOnlyTree) -> Iterator[FieldError]:
    for key in data:
        if key in binary:
            yield errors.invalid(_DATA.key(key), key, "duplicate of key present in binaryData")


def _create_config_map(tree: ReadOnlyTree) -> Iterator[FieldError]:
    data, binary = tree.get("data") or {}, tree.get("binaryData") or {}
    yield from _check_keys(data, _DATA)
    if binary:
        yield from _check_no_duplicates(data, binary)
        yield from _check_keys(binary, _BINARY_DATA)
    size = sum(len(value.encode()) for value in data.values()) + sum(map(_size, binary.values()))
    if size > _MAX_BYTES:
        yield errors.too_long(ROOT.key(""), _MAX_BYTES)


# --- Secret

_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"


def _check_account_token(secret: ReadOnlyTree) -> Iterable[FieldError]:
    if meta.annotations(secret).get(_ACCOUNT_NAME):
        return ()
    return (errors.required(ROOT.child("metadata", "annotations").key(_ACCOUNT_NAME)),)


def _check_user_or_password(secret: ReadOnlyTree) -> Iterable[FieldError]:
    data = secret.get("data") or {}
    if "username" in data or "password" in data:
        return ()
    return [errors.required(_DATA.key(key)) for key in ("username", "password")]


def _require_keys(*keys: str) -> Create:
    def check(secret: ReadOnlyTree) -> Iterable[FieldError]:
        data = secret.get("data") or {}
        return [errors.required(_DATA.key(key)) for key in keys if key not in data]

    return check


def _check_ssh_key(secret: ReadOnlyTree) -> Iterable[FieldError]:
    key = "ssh-privatekey"
    return () if (secret.get("data") or {}).get(key) else (errors.required(_DATA.key(key)),)


def _json_problem(content: bytes) -> str:
    """Return Go's message for a text that is not a JSON object, or an empty string."""
    try:
        tree = parse(content, MediaType.JSON).tree
    except UnreadableBody as error:
        return str(error)
    if tree is None or isinstance(tree, dict):
        return ""
    kinds = ((bool, "bool"), (str, "string"), (list, "array"))
    kind = next((name for cls, name in kinds if isinstance(tree, cls)), "number")
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"


def _require_json(key: str) -> Create:
    """Return the check that a key contains a JSON object. Errors never contain the data of a Secret."""

    def check(secret: ReadOnlyTree) -> Iterable[FieldError]:
        data = secret.get("data") or {}
        if key not in data:
            return (errors.required(_DATA.key(key)),)
        problem = _json_problem(b64decode(data[key] or ""))
        return (errors.invalid(_DATA.key(key), "<secret contents redacted>", problem),) if problem else ()

    return check


_TYPES: Final[Mapping[str, Create]] = {
    "kubernetes.io/service-account-token": _check_account_token,
    "kubernetes.io/dockercfg": _require_json(".dockercfg"),
    "kubernetes.io/dockerconfigjson": _require_json(".dockerconfigjson"),
    "kubernetes.io/basic-auth": _check_user_or_password,
    "kubernetes.io/ssh-auth": _check_ssh_key,
    "kubernetes.io/tls": _require_keys("tls.crt", "tls.key"),
}


def _create_secret(tree: ReadOnlyTree) -> Iterator[FieldError]:
    data = tree.get("data") or {}
    yield from _check_keys(data, _DATA)
    if sum(map(_size, data.values())) > _MAX_BYTES:
        yield errors.too_long(_DATA, _MAX_BYTES)
    check_type = _TYPES.get(tree.get("type", ""))
    if check_type is not None:
        yield from check_type(tree)


# --- kinds


def _config_map(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), count(tree, "data") + count(tree, "binaryData"), ages.age(tree, now)]


def _secret(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "type"), count(tree, "data"), ages.age(tree, now)]


CONFIG_MAP: Final = Kind(
    resource=Resource(group="", version="v1", name="configmaps", kind="ConfigMap", short_names=("cm",)),
    validation=Validation(
        create=_create_config_map,
        update=in_order(_check_immutable("data", "binaryData"), as_created(_create_config_map)),
    ),
    strategy=Strategy(emptiable=(("binaryData",),)),
    printer=Printer(columns=(NAME, Column(name="Data"), AGE_COLUMN), cells=_config_map),
)


def _merge_string_data(secret: Tree) -> None:
    """Move `stringData` to `data`, which it overrides."""
    texts = secret.pop("stringData", None)
    if texts:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        secret["data"] = dict(sorted({**(secret.get("data") or {}), **encoded}.items()))


SECRET: Final = Kind(
    resource=Resource(
        group="", version="v1", name="secrets", kind="Secret", selectable=(selectable("type"),)
    ),
    validation=Validation(
        create=_create_secret,
        update=in_order(immutable_fields("type"), _check_immutable("data"), as_created(_create_secret)),
    ),
    strategy=Strategy(emptiable=(("data",),)),
    printer=Printer(columns=(NAME, Column(name="Type"), Column(name="Data"), AGE_COLUMN), cells=_secret),
    defaults=defaults_table("io.k8s.api.core.v1", {"Secret": {"type": "Opaque"}}),
    internal_changes=(_merge_string_data,),
)
