"""ResourceClaim and ResourceClaimTemplate: the devices that a pod requests."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS_WITHOUT_TABLE, Resource
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import items, part
from mockube.apiserver.kinds.common.checks import IMMUTABLE, field, is_same
from mockube.apiserver.kinds.common.defaults import of
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation import (
    AS_NEW_AND_CHANGE,
    WHOLE_AND_CHANGE,
    Update,
    Validation,
    from_root,
    get_struct,
)
from mockube.apiserver.kinds.core.volumes.claim_spec import check_template_metadata
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.resource.claim_status import update_status
from mockube.apiserver.kinds.resource.requests import check_devices
from mockube.apiserver.kinds.strategy import STATUS_ALONE, Strategy
from mockube.apiserver.wire.table import AGE, NAME, Column, Printer

# --- defaults

_EXACT_COUNT: Final = "ExactCount"


def _default_count(request: Tree) -> None:
    if request["allocationMode"] == _EXACT_COUNT:
        request.setdefault("count", 1)


_REQUEST: Final = ({"allocationMode": _EXACT_COUNT}, _default_count)

DEFAULTS: Final = of("io.k8s.api.resource.v1", {"ExactDeviceRequest": _REQUEST, "DeviceSubRequest": _REQUEST})
"""The defaults of structs that both kinds use."""


# --- validation

_CLAIM_SPEC: Final = field("devices", check_devices, absent={})
_CREATE_CLAIM: Final = from_root(field("spec", _CLAIM_SPEC, absent={}))
_CREATE_TEMPLATE: Final = from_root(
    field(
        "spec",
        field("metadata", check_template_metadata, absent={}),
        field("spec", _CLAIM_SPEC, absent={}),
        absent={},
    )
)


def _immutable_spec(struct: str) -> Update:
    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
        spec = get_struct(new, "spec")
        if is_same(spec, get_struct(old, "spec")):
            return ()
        return (errors.invalid(ROOT.child("spec"), internal(struct, spec), IMMUTABLE),)

    return update


# --- columns


def _claim_cells(claim: Tree, now: datetime) -> list[Any]:
    return [meta.name(claim), ",".join(_states(claim)), age(claim, now)]


def _states(claim: Tree) -> list[str]:
    deleted = ["deleted"] if meta.is_deleting(claim) else []
    if part(claim, "status", "allocation") is None:
        return deleted or ["pending"]
    reserved = ["reserved"] if items(claim, "status", "reservedFor") else []
    return [*deleted, "allocated", *reserved]


def _template_cells(template: Tree, now: datetime) -> list[Any]:
    return [meta.name(template), age(template, now)]


RESOURCE_CLAIM: Final = Kind(
    resource=Resource(
        group="resource.k8s.io",
        version="v1",
        name="resourceclaims",
        kind="ResourceClaim",
        subresources=(STATUS_WITHOUT_TABLE,),
    ),
    strategy=Strategy(resets=STATUS_ALONE, returns_deleted=True),
    validation=Validation(
        again=WHOLE_AND_CHANGE,
        create=_CREATE_CLAIM,
        update=_immutable_spec("resource.ResourceClaimSpec"),
        subresources={"status": update_status},
    ),
    printer=Printer(columns=(NAME, Column(name="State"), AGE), cells=_claim_cells),
)

RESOURCE_CLAIM_TEMPLATE: Final = Kind(
    resource=Resource(
        group="resource.k8s.io", version="v1", name="resourceclaimtemplates", kind="ResourceClaimTemplate"
    ),
    strategy=Strategy(returns_deleted=True),
    validation=Validation(
        again=AS_NEW_AND_CHANGE,
        create=_CREATE_TEMPLATE,
        update=_immutable_spec("resource.ResourceClaimTemplateSpec"),
    ),
    printer=Printer(columns=(NAME, AGE), cells=_template_cells),
)
