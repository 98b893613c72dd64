"""ResourceSlice: the devices of a pool, and the nodes that can use them."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.fields import selectable
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import Path
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.checks import (
    every,
    field,
    must,
    no_longer_than,
    optional,
    pointer,
    positive,
    required,
    unique,
    valid,
)
from mockube.apiserver.kinds.common.defaults import Table, of
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objects import again, created, immutable_fields, in_order
from mockube.apiserver.kinds.common.selectors import check_label_name, check_node_selector
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.disabled_fields import DisabledFields, Gate
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.resource.values import (
    check_driver,
    check_effect,
    check_label,
    check_pool_name,
    check_qualified_name,
    check_subdomain,
    items,
)
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE, NAME, Column, Printer

_MAX_DEVICES: Final = 128
_MAX_ATTRIBUTES: Final = 32
_MAX_TAINTS: Final = 16
_MAX_VALUE_LENGTH: Final = 64


# --- devices

_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_NOT_A_VERSION: Final = "must be a string compatible with semver.org spec 2.0.0"


def _is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


_VALUES: Final = every(
    pointer("string", no_longer_than(_MAX_VALUE_LENGTH)),
    pointer("version", must(_is_version, _NOT_A_VERSION), no_longer_than(_MAX_VALUE_LENGTH)),
)
_KINDS: Final = ("bool", "int", "string", "version")


def _check_attribute(attribute: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from _VALUES(attribute, path)
    present = sum(attribute.get(name) is not None for name in _KINDS)
    if not present:
        yield errors.required(path, "exactly one value must be specified")
    elif present > 1:
        shown = internal("resource.DeviceAttribute", attribute)
        yield errors.invalid(path, shown, "exactly one value must be specified")


def _check_described(device: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    for name, attribute in attributes.items():
        yield from check_qualified_name(name, path.child("attributes").key(name))
        yield from _check_attribute(attribute, path.child("attributes").key(name))
    for name in capacity:
        yield from check_qualified_name(name, path.child("capacity").key(name))
    count = len(attributes) + len(capacity)
    if count > _MAX_ATTRIBUTES:
        problem = f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}"
        yield errors.invalid(path, count, problem)


_TAINT: Final = every(
    field("key", check_label_name, absent=""),
    optional("value", valid(names.check_label_value)),
    required("effect", check_effect),
)
_DEVICE: Final = every(
    field("name", check_label, absent=""),
    _check_described,
    field("taints", items(_MAX_TAINTS, _TAINT)),
)


# --- nodes

_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_NODE_FIELD: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def _check_one_term(selector: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if len(terms) == 1:
        return ()
    shown = [internal("core.NodeSelectorTerm", term) for term in terms]
    problem = "must have exactly one node selector term"
    return (errors.invalid(path.child("nodeSelectorTerms"), shown, problem),)


def _check_nodes(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    present = [f"`{name}`" for name in _NODE_FIELDS if spec.get(name)]
    yield from optional("nodeName", check_subdomain)(spec, path)
    yield from pointer("nodeSelector", check_node_selector, _check_one_term)(spec, path)
    if not present:
        yield errors.required(path, _ONE_NODE_FIELD)
    elif len(present) > 1:
        problem = f"{_ONE_NODE_FIELD}, but multiple fields are set"
        yield errors.invalid(path, f"{{{', '.join(present)}}}", problem)


_POOL: Final = every(
    required("name", check_pool_name),
    field("resourceSliceCount", positive, absent=0),
    field("generation", must(lambda value: value >= 0, "must be greater than or equal to zero"), absent=0),
)
_CREATE: Final = created(
    field(
        "spec",
        check_driver,
        field("pool", _POOL, absent={}),
        _check_nodes,
        field("devices", items(_MAX_DEVICES, _DEVICE), unique("name")),
        absent={},
    )
)

# --- defaults


def _timed_defaults(clock: Clock) -> Table:
    """A taint without a time was added now."""

    def default_time_added(taint: Tree) -> None:
        if "timeAdded" not in taint:
            taint["timeAdded"] = format_time(clock.now())

    return of("io.k8s.api.resource.v1", {"DeviceTaint": default_time_added})


# --- warnings


def _warn_create(resource_slice: ReadOnlyTree) -> Iterator[str]:
    driver = (resource_slice.get("spec") or {}).get("driver", "")
    if driver != driver.lower():
        yield f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"


# --- columns


def _cells(resource_slice: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(resource_slice),
        text(resource_slice, "spec", "nodeName"),
        text(resource_slice, "spec", "driver"),
        text(resource_slice, "spec", "pool", "name"),
        age(resource_slice, now),
    ]


_LISTS: Final = ("bools", "ints", "strings", "versions")
_DISABLED: Final = DisabledFields(
    (
        Gate(("spec.devices.*.nodeAllocatableResourceMappings",)),
        Gate(tuple(f"spec.devices.*.attributes.*.{name}" for name in _LISTS)),
    )
)

KIND: Final = Kind(
    resource=Resource(
        group="resource.k8s.io",
        version="v1",
        name="resourceslices",
        kind="ResourceSlice",
        namespaced=False,
        refused_label="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}",
        selectable=(selectable("spec.nodeName"), selectable("spec.driver")),
    ),
    strategy=Strategy(generation=SPEC, first_generation=1, disabled=_DISABLED, returns_deleted=True),
    defaults=of("io.k8s.api.resource.v1", {"NodeAllocatableResourceMapping": {"allocationMultiplier": "1"}}),
    timed_defaults=_timed_defaults,
    validation=Validation(
        create=_CREATE,
        update=in_order(
            again(_CREATE),
            immutable_fields("spec", "pool", "name", absent=""),
            immutable_fields("spec", "driver", absent=""),
            immutable_fields("spec", "nodeName"),
        ),
    ),
    warnings=Warnings(create=_warn_create),
    printer=Printer(
        columns=(NAME, Column(name="Node"), Column(name="Driver"), Column(name="Pool"), AGE), cells=_cells
    ),
)
