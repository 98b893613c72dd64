"""ResourceSlice: the devices of a pool, and the nodes that can use them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import checks, validation
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.defaults import Table, defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.selectors import check_node_selector
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, DisabledFields, Gate, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer
from mockube.component_base.clock import Clock

from . import values
from .declared import newest, older
from .devices import check_counter_set, device, is_set, node_name, refuse_false

_MAX_DEVICES: Final = 128
_MAX_ADVANCED_DEVICES: Final = 64
"""The limit if a device has taints or consumes counters."""
_MAX_COUNTER_SETS: Final = 8

# --- nodes

_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_NODE_FIELD: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def _check_one_term(selector: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if len(terms) == 1:
        return ()
    value = [internal("core.NodeSelectorTerm", term) for term in terms] or selector.get("nodeSelectorTerms")
    problem = "must have exactly one node selector term"
    return (errors.invalid(path.child("nodeSelectorTerms"), value, problem),)


_NODES: Final = checks.all_of(
    node_name("must be either unset or set to a non-empty string"),
    checks.pointer("nodeSelector", check_node_selector, _check_one_term),
    refuse_false("allNodes"),
    refuse_false("perDeviceNodeSelection"),
)


def _check_nodes(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from _NODES(spec, path)
    present = [f"`{name}`" for name in _NODE_FIELDS if is_set(spec, name)]
    if not present:
        yield errors.required(path, _ONE_NODE_FIELD)
    elif len(present) > 1:
        problem = f"{_ONE_NODE_FIELD}, but multiple fields are set"
        yield errors.invalid(path, f"{{{', '.join(present)}}}", problem)


# --- devices


def _check_devices(spec: ReadOnlyTree, path: Path, old: ReadOnlyTree | None = None) -> Iterator[FieldError]:
    devices = spec.get("devices") or []
    if spec.get("devices") is not None and spec.get("sharedCounters") is not None:
        yield errors.invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")
    is_advanced = any(entry.get("taints") or entry.get("consumesCounters") for entry in devices)
    limit = _MAX_ADVANCED_DEVICES if is_advanced else _MAX_DEVICES
    old_devices = {entry.get("name", ""): entry for entry in (old or {}).get("devices") or ()}
    check = device(chooses_nodes=bool(spec.get("perDeviceNodeSelection")), old_devices=old_devices)
    yield from values.items(limit, check, key=values.item_name)(devices, path.child("devices"))


_POOL: Final = checks.all_of(
    checks.require("name", values.check_pool_name),
    checks.field("resourceSliceCount", checks.positive, absent=0),
    checks.field(
        "generation",
        checks.require_that(lambda value: value >= 0, "must be greater than or equal to zero"),
        absent=0,
    ),
)
_DRIVER_AND_POOL: Final = checks.all_of(values.check_driver, checks.field("pool", _POOL, absent={}))
_COUNTER_SETS: Final = checks.field(
    "sharedCounters",
    values.declared_items(_MAX_COUNTER_SETS, check_counter_set, key=values.item_name, required=("name",)),
)
_CREATE: Final = validation.from_root(
    checks.field("spec", _DRIVER_AND_POOL, _check_nodes, _check_devices, _COUNTER_SETS, absent={})
)
_SPEC: Final = ROOT.child("spec")
_IMMUTABLE: Final = validation.in_order(
    validation.immutable_fields("spec", "pool", "name", absent=""),
    validation.immutable_fields("spec", "driver", absent=""),
    validation.immutable_fields("spec", "nodeName"),
)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    spec = validation.get_struct(new, "spec")
    yield from _DRIVER_AND_POOL(spec, _SPEC)
    yield from _IMMUTABLE(new, old)
    yield from _check_nodes(spec, _SPEC)
    yield from _check_devices(spec, _SPEC, validation.get_struct(old, "spec"))
    yield from _COUNTER_SETS(spec, _SPEC)


# --- defaults


def _timed_defaults(clock: Clock) -> Table:
    """Return the defaults that need a clock: a taint without a time gets the current one."""

    def default_time_added(taint: Tree) -> None:
        if "timeAdded" not in taint:
            taint["timeAdded"] = format_time(clock.now())

    return defaults_table("io.k8s.api.resource.v1", {"DeviceTaint": default_time_added})


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
        Gate(("spec.devices.*.nodeAllocatableResources",)),
        Gate(("spec.devices.*.consumesCounters.*.compatibilityGroups",)),
        Gate(("spec.partitionTypeAttribute",)),
        Gate(("spec.skipNodeOperations",)),
        Gate(tuple(f"spec.devices.*.attributes.*.{name}" for name in _LISTS)),
    )
)

_VALIDATION: Final = Validation(create=_CREATE, update=_update)
OLDER_VALIDATION: Final = older(_VALIDATION)
KIND: Final = Kind(
    resource=Resource(
        group="resource.k8s.io",
        version="v1",
        name="resourceslices",
        kind="ResourceSlice",
        namespaced=False,
        refused_label="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}",
        indexed="spec.nodeName",
        selectable=(selectable("spec.nodeName"), selectable("spec.driver"), selectable("spec.pool.name")),
    ),
    strategy=Strategy(
        generation=SPEC,
        first_generation=1,
        counts_dropped=True,
        disabled=_DISABLED,
        emptiable=(("spec", "devices"), ("spec", "sharedCounters")),
        returns_deleted=True,
    ),
    timed_defaults=_timed_defaults,
    validation=newest(_VALIDATION),
    warnings=Warnings(create=_warn_create),
    printer=Printer(
        columns=(NAME, Column(name="Node"), Column(name="Driver"), Column(name="Pool"), AGE_COLUMN),
        cells=_cells,
    ),
)
