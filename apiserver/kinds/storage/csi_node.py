"""CSINode."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, checks, validation
from mockube.apiserver.kinds.common.cells import count
from mockube.apiserver.kinds.common.conditions import check_reason_format
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.core.volumes.sources import check_driver_name
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import (
    MAIN,
    STATUS_ALONE,
    DisabledFields,
    Gate,
    Strategy,
    StrategyContext,
    null_when_empty,
)
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_NODE_ID: Final = checks.require_that(
    lambda text: len(text.encode()) <= 256, "must be 256 characters or less"
)
_DRIVER: Final = checks.all_of(
    checks.require("name", check_driver_name),
    checks.require("nodeID", _NODE_ID),
    checks.pointer("allocatable", checks.pointer("count", checks.non_negative)),
)


def _check_topology_keys(keys: Iterable[str], path: Path) -> Iterator[FieldError]:
    seen = set()
    for key in keys:
        if not key:
            yield errors.required(path)
        if key in seen:
            yield errors.duplicate(path, key)
        seen.add(key)
        yield from check_label_name(key, path)


def _check_drivers(drivers: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, driver in enumerate(drivers or ()):
        driver_path, name = path.index(index), driver.get("name", "")
        yield from _DRIVER(driver, driver_path)
        if name in seen:
            yield errors.duplicate(driver_path.child("name"), name)
        seen.add(name)
        yield from _check_topology_keys(driver.get("topologyKeys") or (), driver_path)


_CREATE: Final = validation.from_root(
    checks.field("spec", checks.field("drivers", _check_drivers), absent={})
)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Allow only `allocatable` of an existing driver to change."""
    yield from validation.as_created(_CREATE, namespaced=False)(new, old)
    drivers = {
        driver.get("name"): driver for driver in (validation.get_struct(new, "spec").get("drivers") or ())
    }
    for old_driver in validation.get_struct(old, "spec").get("drivers") or ():
        driver = drivers.get(old_driver.get("name"))
        if driver is not None and driver | {"allocatable": None} != old_driver | {"allocatable": None}:
            value = internal("storage.CSINodeDriver", {**driver, "allocatable": None})
            yield errors.invalid(ROOT.child("spec", "drivers"), value, checks.IMMUTABLE)


_MAX_HEALTH_CONDITIONS: Final = 16
_MAX_HEALTH_REASON: Final = 256
_HEALTH_CONDITION: Final = checks.all_of(
    checks.field("status", checks.one_of("StorageDegraded", "StorageUnreachable"), absent=""),
    checks.require("reason", check_reason_format, checks.max_bytes(_MAX_HEALTH_REASON)),
    checks.field("message", checks.max_bytes(1024), absent=""),
    checks.pointer(
        "accessMode", checks.one_of("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
    ),
    checks.pointer("volumeMode", checks.one_of("Filesystem", "Block")),
)


def _update_status(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[FieldError]:
    seen, path = set(), ROOT.child("status", "storageHealth")
    for index, health in enumerate(validation.get_struct(new, "status").get("storageHealth") or ()):
        health_path, name = path.index(index), health.get("name") or ""
        if name in seen:
            yield errors.duplicate(health_path, name)
        seen.add(name)
        yield from checks.require("name", check_driver_name)(health, health_path)
        yield from _check_health_conditions(
            health.get("healthConditions") or [], health_path.child("healthConditions")
        )


def _check_health_conditions(conditions: Sequence[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    if len(conditions) > _MAX_HEALTH_CONDITIONS:
        yield errors.too_many(path, len(conditions), _MAX_HEALTH_CONDITIONS)
        return
    for index, condition in enumerate(conditions):
        yield from _HEALTH_CONDITION(condition, path.index(index))


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), count(tree, "spec", "drivers"), ages.age(tree, now)]


_write_lists = null_when_empty(("spec", "drivers"), ("spec", "drivers", "*", "topologyKeys"))


def _prepare_create(node: Tree, _request: StrategyContext) -> None:
    _write_lists(node)


def _prepare_update(new: Tree, _old: Tree, _request: StrategyContext) -> None:
    """Replace empty lists by null, as Go does, so that missing topology keys equal an empty list."""
    _write_lists(new)


KIND: Final = Kind(
    resource=Resource(
        group="storage.k8s.io",
        version="v1",
        name="csinodes",
        kind="CSINode",
        namespaced=False,
        subresources=(STATUS,),
    ),
    strategy=Strategy(
        resets=STATUS_ALONE,
        disabled=DisabledFields((Gate(("status.storageHealth",)),)),
        returns_deleted=True,
        unconditional_update=False,
        prepare_create=_prepare_create,
        prepare_update={MAIN: _prepare_update},
    ),
    validation=Validation(
        repeated_checks=validation.NO_CHECKS,
        create=_CREATE,
        update=_update,
        subresources={"status": _update_status},
    ),
    printer=Printer(columns=(NAME, Column(name="Drivers", type="integer"), AGE_COLUMN), cells=_cells),
)
