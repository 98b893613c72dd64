"""CertificateSigningRequest. Its subresources are used to approve and to sign it."""

from collections import deque
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import STATUS, Resource, Subresource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import part, text
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, SPEC, Strategy, StrategyContext
from mockube.apiserver.kinds.strategy import STATUS as STATUS_PATH
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .validation import VALIDATION

_DECISIONS: Final = ("Approved", "Denied")
_REQUESTOR_FIELDS: Final = frozenset({"username", "uid", "groups", "extra"})


def _prepare_create(csr: Tree, request: StrategyContext) -> None:
    """Set the requestor to the user of the request: no client can request a certificate as another user."""
    user = request.user
    requestor = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    spec = {field: value for field, value in csr["spec"].items() if field not in _REQUESTOR_FIELDS}
    csr["spec"] = spec | {field: value for field, value in requestor.items() if value}


def _prepare_status(new: Tree, old: Tree, request: StrategyContext) -> None:
    status, old_conditions = new.get("status") or {}, (old.get("status") or {}).get("conditions", [])
    new_conditions = status.get("conditions", [])
    for decision in _DECISIONS:
        new_conditions = _with_decisions(new_conditions, old_conditions, decision)
    new["status"] = _with_times(status | {"conditions": new_conditions}, old_conditions, request)


def _with_decisions(new_conditions: list[Tree], old_conditions: list[Tree], decision: str) -> list[Tree]:
    """Return the conditions with the old decisions. If their number differs, validation refuses the update."""
    old_decisions = deque(condition for condition in old_conditions if condition.get("type") == decision)
    if len(old_decisions) != sum(condition.get("type") == decision for condition in new_conditions):
        return new_conditions
    return [
        old_decisions.popleft() if condition.get("type") == decision else condition
        for condition in new_conditions
    ]


def _prepare_approval(new: Tree, old: Tree, request: StrategyContext) -> None:
    """Keep the old status, except for the conditions."""
    old_status = old.get("status") or {}
    new_conditions = (new.get("status") or {}).get("conditions", [])
    new["status"] = _with_times(
        old_status | {"conditions": new_conditions}, old_status.get("conditions", []), request
    )


def _with_times(status: Tree, old_conditions: list[Tree], request: StrategyContext) -> Tree:
    """Return the status with the missing times of its conditions."""
    now = format_time(request.now)
    since = {
        (condition.get("type"), condition.get("status")): condition.get("lastTransitionTime") or now
        for condition in reversed(old_conditions)
    }
    new_conditions = [
        condition
        | {
            "lastUpdateTime": condition.get("lastUpdateTime") or now,
            "lastTransitionTime": condition.get("lastTransitionTime")
            or since.get((condition.get("type"), condition.get("status")), now),
        }
        for condition in status["conditions"]
    ]
    new_status = status | {"conditions": new_conditions}
    return (
        new_status
        if new_conditions
        else {field: value for field, value in new_status.items() if field != "conditions"}
    )


_STRATEGY: Final = Strategy(
    resets={
        MAIN: (*SPEC, *STATUS_PATH),
        "status": SPEC,
        "approval": (*SPEC, ("status", "certificate")),
    },
    prepare_create=_prepare_create,
    prepare_update={"status": _prepare_status, "approval": _prepare_approval},
)


# --- columns


def _cells(csr: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(csr),
        ages.age(csr, now),
        text(csr, "spec", "signerName") or "<none>",
        text(csr, "spec", "username"),
        _requested_duration(csr),
        _condition(csr),
    ]


def _requested_duration(csr: Tree) -> str:
    seconds = part(csr, "spec", "expirationSeconds")
    return "<none>" if seconds is None else ages.human_duration(timedelta(seconds=seconds))


def _condition(csr: Tree) -> str:
    """Return the decision and the result. Conditions of these types are always true, so their status is not read."""
    types = {text(condition, "type") for condition in conditions.of(csr)}
    decision = next((decision for decision in ("Denied", "Approved") if decision in types), "Pending")
    failed = ("Failed",) if "Failed" in types else ()
    issued = ("Issued",) if text(csr, "status", "certificate") else ()
    return ",".join((decision, *failed, *issued))


KIND: Final = Kind(
    resource=Resource(
        group="certificates.k8s.io",
        version="v1",
        name="certificatesigningrequests",
        kind="CertificateSigningRequest",
        namespaced=False,
        short_names=("csr",),
        selectable=(selectable("spec.signerName"),),
        subresources=(Subresource(name="approval"), STATUS),
    ),
    strategy=_STRATEGY,
    validation=VALIDATION,
    printer=Printer(
        columns=(
            NAME,
            AGE_COLUMN,
            Column(name="SignerName"),
            Column(name="Requestor"),
            Column(name="RequestedDuration"),
            Column(name="Condition"),
        ),
        cells=_cells,
    ),
)
