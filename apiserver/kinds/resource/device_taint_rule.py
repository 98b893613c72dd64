"""DeviceTaintRule: a taint of all devices that it selects."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS_WITHOUT_TABLE, Resource
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.ages import age, since
from mockube.apiserver.kinds.common.cells import text, time
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.conditions import check_conditions
from mockube.apiserver.kinds.common.validation import Validation, get_struct
from mockube.apiserver.kinds.core.volumes.sources import check_driver_name
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, SPEC, STATUS_ALONE, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .declared import newest
from .devices import TAINT, TAINT_KEY
from .values import check_label, check_pool_name

_MAX_CONDITIONS: Final = 8


def _not_empty(name: str, check: Check) -> Check:
    """Return the check of a field that is absent or has a value."""
    check_value = checks.require(name, check)
    return lambda struct, path: () if struct.get(name) is None else check_value(struct, path)


_SELECTOR: Final = checks.pointer(
    "deviceSelector",
    _not_empty("driver", check_driver_name),
    _not_empty("pool", check_pool_name),
    checks.pointer("device", check_label),
)
_CHECK: Final = checks.all_of(_SELECTOR, checks.field("taint", TAINT, absent={}))
_CHECK_WITH_OLD_EFFECT: Final = checks.all_of(_SELECTOR, checks.field("taint", TAINT_KEY, absent={}))
_SPEC: Final = ROOT.child("spec")


def _create(rule: ReadOnlyTree) -> Iterable[FieldError]:
    return _CHECK(get_struct(rule, "spec"), _SPEC)


def _effect(rule: ReadOnlyTree) -> str:
    return str(get_struct(rule, "spec", "taint").get("effect") or "")


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    check = _CHECK_WITH_OLD_EFFECT if _effect(new) == _effect(old) else _CHECK
    return check(get_struct(new, "spec"), _SPEC)


def _update_status(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[FieldError]:
    status, path = get_struct(new, "status"), ROOT.child("status", "conditions")
    rule_conditions = status.get("conditions") or ()
    yield from check_conditions(rule_conditions, path)
    if len(rule_conditions) > _MAX_CONDITIONS:
        yield errors.too_many(path, len(rule_conditions), _MAX_CONDITIONS)


def _prepare_update(new: Tree, old: Tree, request: StrategyContext) -> None:
    """Let the time of a taint be that of its effect, unless the client sets another one."""
    taint, before = get_struct(new, "spec", "taint"), get_struct(old, "spec", "taint")
    if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
        timed = {**taint, "timeAdded": format_time(request.now)}
        new["spec"] = {**(new.get("spec") or {}), "taint": timed}


def _cells(rule: Tree, now: datetime) -> list[Any]:
    added = time(rule, "spec", "taint", "timeAdded")
    return [
        meta.name(rule),
        *(text(rule, "spec", "taint", name) for name in ("key", "value", "effect")),
        since(added, now) if added else "",
        age(rule, now),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="resource.k8s.io",
        version="v1",
        name="devicetaintrules",
        kind="DeviceTaintRule",
        namespaced=False,
        hashed_version="v1beta2",
        subresources=(STATUS_WITHOUT_TABLE,),
    ),
    strategy=Strategy(
        resets=STATUS_ALONE,
        generation=SPEC,
        first_generation=1,
        unconditional_update=False,
        prepare_update={MAIN: _prepare_update},
    ),
    validation=newest(Validation(create=_create, update=_update, subresources={"status": _update_status})),
    printer=Printer(
        columns=(NAME, *(Column(name=name) for name in ("Key", "Value", "Effect", "TimeAdded")), AGE_COLUMN),
        cells=_cells,
    ),
)
