"""DeviceClass: devices of one type, and how drivers configure them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.resource_names import is_extended
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.checks import field, pointer, require_that
from mockube.apiserver.kinds.common.objectmeta import checked_by_full_name
from mockube.apiserver.kinds.common.validation import (
    METADATA_AND_CHANGE,
    Validation,
    from_root,
    repeat_create_checks,
)
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Printer

from .declared import DeclaredName, declare, newest, older
from .requests import MAX_ITEMS, check_configuration, check_selectors
from .values import declared_items

_NAMESPACE, _QUOTA = "kubernetes.io/", "requests."
_IS_EXTENDED: Final = require_that(is_extended, "must be a valid extended resource name")


def _check_resource_name(name: str, path: Path) -> Iterator[FieldError]:
    if "/" not in name:
        problem = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield errors.invalid(path, name, problem)
    elif _NAMESPACE in name:
        yield errors.invalid(path, name, f'must not have "{_NAMESPACE}" domain')
    if name.startswith(_QUOTA):
        yield errors.invalid(path, name, f'must not have "{_QUOTA}" prefix')
    for problem in names.check_label_key(f"{_QUOTA}{name}"):
        yield errors.invalid(path, name, problem)


_CREATE: Final = from_root(
    field(
        "spec",
        check_selectors,
        field("config", declared_items(MAX_ITEMS, check_configuration)),
        pointer("extendedResourceName", declare(_check_resource_name, _IS_EXTENDED)),
        absent={},
    )
)


def _check_name(name: str) -> list[str]:
    return names.check_dns1123_subdomain(name, names.BYTES)


def _cells(device_class: Tree, now: datetime) -> list[Any]:
    return [meta.name(device_class), age(device_class, now)]


_VALIDATION: Final = Validation(
    repeated_checks=METADATA_AND_CHANGE,
    name=checked_by_full_name(_check_name),
    create=_CREATE,
    update=repeat_create_checks(_CREATE),
)
OLDER_VALIDATION: Final = older(_VALIDATION)
KIND: Final = Kind(
    resource=Resource(
        group="resource.k8s.io", version="v1", name="deviceclasses", kind="DeviceClass", namespaced=False
    ),
    strategy=Strategy(generation=SPEC, first_generation=1, returns_deleted=True),
    validation=replace(newest(_VALIDATION), declared=DeclaredName()),
    printer=Printer(columns=(NAME, AGE_COLUMN), cells=_cells),
)
