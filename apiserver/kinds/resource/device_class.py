"""DeviceClass: devices of one type, and how drivers configure them."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta, names
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
from mockube.apiserver.kinds.resource.requests import MAX_ITEMS, check_configuration, check_selectors
from mockube.apiserver.kinds.resource.values import items
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Printer

_CREATE: Final = from_root(
    field(
        "spec",
        check_selectors,
        field("config", items(MAX_ITEMS, check_configuration)),
        pointer("extendedResourceName", require_that(is_extended, "must be a valid extended resource name")),
        absent={},
    )
)


def _check_name(name: str) -> list[str]:
    return names.check_dns1123_subdomain(name, names.BYTES)


def _cells(device_class: Tree, now: datetime) -> list[Any]:
    return [meta.name(device_class), age(device_class, now)]


KIND: Final = Kind(
    resource=Resource(
        group="resource.k8s.io", version="v1", name="deviceclasses", kind="DeviceClass", namespaced=False
    ),
    strategy=Strategy(generation=SPEC, first_generation=1, returns_deleted=True),
    validation=Validation(
        repeated_checks=METADATA_AND_CHANGE,
        name=checked_by_full_name(_check_name),
        create=_CREATE,
        update=repeat_create_checks(_CREATE),
    ),
    printer=Printer(columns=(NAME, AGE_COLUMN), cells=_cells),
)
