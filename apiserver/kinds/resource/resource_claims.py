"""ResourceClaim and ResourceClaimTemplate: the devices that a pod requests."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from ipaddress import ip_interface
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS_WITHOUT_TABLE, Resource
from mockube.apiserver.kinds.common import cells, validation
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.checks import (
    IMMUTABLE,
    Check,
    all_of,
    canonical,
    each_item,
    field,
    is_same,
    max_bytes,
    max_items,
    one_of,
    optional,
    pointer,
    require,
)
from mockube.apiserver.kinds.common.conditions import check_conditions
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.selectors import check_node_selector
from mockube.apiserver.kinds.common.validation import Update, Validation
from mockube.apiserver.kinds.core.volumes.claim_spec import check_template_metadata
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import STATUS_ALONE, DisabledFields, Gate, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from . import declared, values
from .devices import check_binding
from .requests import check_configuration, check_devices, reference, references, request_names

# --- defaults

_EXACT_COUNT: Final = "ExactCount"


def _default_count(request: Tree) -> None:
    if request["allocationMode"] == _EXACT_COUNT:
        request.setdefault("count", 1)


_REQUEST: Final = ({"allocationMode": _EXACT_COUNT}, _default_count)

DEFAULTS: Final = defaults_table(
    "io.k8s.api.resource.v1", {"ExactDeviceRequest": _REQUEST, "DeviceSubRequest": _REQUEST}
)
"""The defaults of structs that both kinds use."""


# --- validation

_CLAIM_SPEC: Final = field("devices", check_devices, absent={})
_CREATE_CLAIM: Final = validation.from_root(field("spec", _CLAIM_SPEC, absent={}))
_CREATE_TEMPLATE: Final = validation.from_root(
    field(
        "spec",
        field("metadata", check_template_metadata, absent={}),
        field("spec", _CLAIM_SPEC, absent={}),
        absent={},
    )
)


def _immutable_spec(struct: str) -> Update:
    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
        spec = validation.get_struct(new, "spec")
        if is_same(spec, validation.get_struct(old, "spec")):
            return ()
        return (errors.invalid(ROOT.child("spec"), internal(struct, spec), IMMUTABLE),)

    return update


def _declared_immutable_spec(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    replaced = [*_immutable_spec("resource.ResourceClaimSpec")(new, old)]
    return declared.declared_errors([replace(error, value=None) for error in replaced], replaced)


# --- validation of the status

_STATUS: Final = ROOT.child("status")
_MAX_USERS, _MAX_RESULTS, _MAX_CONFIGURATIONS = 256, 32, 64
_MAX_CONDITIONS, _MAX_ADDRESSES = 8, 16

_DEVICE_NAME: Final = field("device", values.check_label, absent="")
_SHARE: Final = pointer("shareID", values.declared_uid)
_DEVICE: Final = all_of(values.check_driver, require("pool", values.check_pool_name), _DEVICE_NAME, _SHARE)
_RESULT: Final = all_of(values.declared_driver, values.declared_pool, _DEVICE_NAME)
_ID: Final = {"driver": "Driver", "pool": "Pool", "device": "Device", "shareID": "ShareID"}
"""The fields that identify an allocated device, and their names in Go."""

_USERS: Final = values.declared_items(
    _MAX_USERS,
    require("resource"),
    require("name"),
    require("uid"),
    key=lambda user: user.get("uid", ""),
    required=("resource", "name", "uid"),
)


# --- devices in the status


def _check_interface(address: str, path: Path) -> Iterable[FieldError]:
    try:
        canonical = str(ip_interface(address)) if "/" in address else ""
    except ValueError:
        canonical = ""
    if not canonical:
        problem = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return (errors.invalid(path, address, problem),)
    if canonical != address:
        return (errors.invalid(path, address, f'must be in canonical form ("{canonical}")'),)
    return ()


_NETWORK: Final = all_of(
    declared.declare(optional("interfaceName", max_bytes(256))),
    declared.declare(optional("hardwareAddress", max_bytes(128))),
    field("ips", values.declared_items(_MAX_ADDRESSES, _check_interface, key=values.item_value)),
)
_REPORTED: Final = all_of(
    optional("conditions", max_items(_MAX_CONDITIONS), check_conditions),
    pointer("data", values.check_parameters),
    pointer("networkData", _NETWORK),
)


def _check_reports(
    devices: Sequence[ReadOnlyTree], allocated: set[tuple[str, ...]], path: Path
) -> Iterator[FieldError]:
    for index, device in enumerate(devices):
        device_path, key = path.index(index), _key(device)
        yield from _DEVICE(device, device_path)
        if key not in allocated:
            yield errors.invalid(device_path, _error_value(key), "must be an allocated device in the claim")
        yield from _REPORTED(device, device_path)
    seen = set()
    for index, device in enumerate(devices):
        key = _key(device)
        if key in seen:
            error = errors.duplicate(path.index(index), _error_value(key))
            value = declared.describe_item(device, required=("conditions",))
            yield from declared.declared_errors([replace(error, value=value)], [error])
        seen.add(key)


def _key(device: ReadOnlyTree) -> tuple[str, ...]:
    return tuple(device.get(name, "") for name in _ID)


def _error_value(key: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(_ID.values(), key, strict=True))


# --- the allocation


_TOLERATIONS: Final = field("tolerations", each_item(values.check_toleration))


def _allocation(requests: frozenset[str]) -> Check:
    result = all_of(
        field("request", reference(requests), absent=""), _RESULT, check_binding, _TOLERATIONS, _SHARE
    )
    configuration = all_of(
        declared.declare(require("source", one_of("FromClaim", "FromClass"))),
        references(requests),
        check_configuration,
    )
    return all_of(
        field(
            "devices",
            field("results", values.declared_items(_MAX_RESULTS, result)),
            field("config", values.declared_items(_MAX_CONFIGURATIONS, configuration)),
            absent={},
        ),
        pointer("nodeSelector", check_node_selector),
    )


def _check_allocation(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Refuse changes of an allocation; check a new one."""
    allocation, old_allocation = (
        validation.get_struct(new, "status").get("allocation"),
        validation.get_struct(old, "status").get("allocation"),
    )
    path = _STATUS.child("allocation")
    if allocation is None or is_same(allocation, old_allocation):
        return ()
    if old_allocation is not None:
        replaced = errors.invalid(path, internal("resource.AllocationResult", allocation), IMMUTABLE)
        return declared.declared_errors(
            [errors.invalid(path, None, "field cannot be modified once set")], [replaced]
        )
    return _allocation(request_names(validation.get_struct(new, "spec", "devices")))(allocation, path)


# --- consumers


def _check_users(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    users, old_users = (validation.get_struct(tree, "status").get("reservedFor") or [] for tree in (new, old))
    path = _STATUS.child("reservedFor")
    if users and validation.get_struct(new, "status").get("allocation") is None:
        return (errors.forbidden(path, "may not be specified when `allocated` is not set"),)
    if meta.is_deleting(new) and {*map(canonical, users)} - {*map(canonical, old_users)}:
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        return (errors.forbidden(path, detail),)
    return ()


def _update_status(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    status = validation.get_struct(new, "status")
    results = validation.get_struct(status, "allocation", "devices").get("results") or ()
    users = status.get("reservedFor")
    yield from _USERS(users, _STATUS.child("reservedFor"))
    yield from _check_reports(status.get("devices") or (), {*map(_key, results)}, _STATUS.child("devices"))
    yield from _check_users(new, old)
    yield from _check_allocation(new, old)


# --- columns


def _claim_cells(claim: Tree, now: datetime) -> list[Any]:
    return [meta.name(claim), ",".join(_states(claim)), age(claim, now)]


def _states(claim: Tree) -> list[str]:
    deleted = ["deleted"] if meta.is_deleting(claim) else []
    if cells.part(claim, "status", "allocation") is None:
        return deleted or ["pending"]
    reserved = ["reserved"] if cells.items(claim, "status", "reservedFor") else []
    return [*deleted, "allocated", *reserved]


def _template_cells(template: Tree, now: datetime) -> list[Any]:
    return [meta.name(template), age(template, now)]


def _drop_deallocated(new: Tree, old: Tree, _request: StrategyContext) -> None:
    """Drop the status of devices that are no longer allocated, for clients that do not know these fields."""
    status = new.get("status") or {}
    deallocated = _allocated_devices(old) - _allocated_devices(new)
    if not deallocated or "devices" not in status:
        return
    status = dict(status)
    status["devices"] = [device for device in status["devices"] if _device_id(device) not in deallocated]
    if not status["devices"]:
        del status["devices"]
    new["status"] = status


def _allocated_devices(claim: ReadOnlyTree) -> set[tuple[str, ...]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return {_device_id(result) for result in (allocation.get("devices") or {}).get("results") or ()}


def _device_id(device: ReadOnlyTree) -> tuple[str, ...]:
    return tuple(device.get(name) or "" for name in _ID)


def _derived_attributes(spec: str) -> Gate:
    requests = f"{spec}.devices.requests.*"
    return Gate((f"{requests}.exactly.derivedAttributes", f"{requests}.firstAvailable.*.derivedAttributes"))


_CLAIM_VALIDATION: Final = Validation(
    repeated_checks=validation.METADATA_AND_CHANGE,
    create=_CREATE_CLAIM,
    update=_declared_immutable_spec,
    subresources={"status": _update_status},
)
_TEMPLATE_VALIDATION: Final = Validation(
    repeated_checks=validation.CREATE_AND_CHANGE,
    create=_CREATE_TEMPLATE,
    update=_immutable_spec("resource.ResourceClaimTemplateSpec"),
)
OLDER_CLAIM_VALIDATION: Final = declared.older(_CLAIM_VALIDATION)
OLDER_TEMPLATE_VALIDATION: Final = declared.older(_TEMPLATE_VALIDATION)


def _update_template(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check a template as a new one as well. What is declared follows the error of its change."""
    yield from _CREATE_TEMPLATE(new)
    yield from _TEMPLATE_VALIDATION.update(new, old)


RESOURCE_CLAIM: Final = Kind(
    resource=Resource(
        group="resource.k8s.io",
        version="v1",
        name="resourceclaims",
        kind="ResourceClaim",
        subresources=(STATUS_WITHOUT_TABLE,),
    ),
    strategy=Strategy(
        resets=STATUS_ALONE,
        returns_deleted=True,
        disabled=DisabledFields(
            (
                _derived_attributes("spec"),
                Gate(("status.allocation.devices.results.*.skipNodeOperations",)),
            )
        ),
        prepare_update={"status": _drop_deallocated},
    ),
    validation=declared.newest(_CLAIM_VALIDATION),
    printer=Printer(columns=(NAME, Column(name="State"), AGE_COLUMN), cells=_claim_cells),
)

RESOURCE_CLAIM_TEMPLATE: Final = Kind(
    resource=Resource(
        group="resource.k8s.io", version="v1", name="resourceclaimtemplates", kind="ResourceClaimTemplate"
    ),
    strategy=Strategy(returns_deleted=True, disabled=DisabledFields((_derived_attributes("spec.spec"),))),
    validation=declared.newest(
        replace(_TEMPLATE_VALIDATION, repeated_checks=validation.METADATA_AND_CHANGE, update=_update_template)
    ),
    printer=Printer(columns=(NAME, AGE_COLUMN), cells=_template_cells),
)
