"""CertificateSigningRequests: they say who asked, and are approved and signed through different doors."""

from collections import deque

from apimachinery.groups import GroupResource
from apimachinery.timestamps import format_time
from apiserver.resources.strategy import MAIN, SPEC, STATUS, Request, Strategy, Tree

DECISIONS = ("Approved", "Denied")
_ASKED_BY = frozenset({"username", "uid", "groups", "extra"})


def _prepare_create(csr: Tree, request: Request) -> None:
    """The request is its maker's: nobody can ask in another's name."""
    user = request.user
    asked_by = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    given = {field: value for field, value in csr["spec"].items() if field not in _ASKED_BY}
    csr["spec"] = given | {field: value for field, value in asked_by.items() if value}


def _prepare_status(new: Tree, old: Tree, request: Request) -> None:
    status, before = new.get("status") or {}, (old.get("status") or {}).get("conditions", [])
    conditions = status.get("conditions", [])
    for decision in DECISIONS:
        conditions = _with_decisions(conditions, before, decision)
    new["status"] = _timed(status | {"conditions": conditions}, before, request)


def _with_decisions(conditions: list[Tree], before: list[Tree], decision: str) -> list[Tree]:
    """The conditions with each decision as it was. If there are more or fewer, validation says so."""
    kept = deque(condition for condition in before if condition.get("type") == decision)
    if len(kept) != sum(condition.get("type") == decision for condition in conditions):
        return conditions
    return [kept.popleft() if condition.get("type") == decision else condition for condition in conditions]


def _prepare_approval(new: Tree, old: Tree, request: Request) -> None:
    """Only the conditions change."""
    before = old.get("status") or {}
    conditions = (new.get("status") or {}).get("conditions", [])
    new["status"] = _timed(before | {"conditions": conditions}, before.get("conditions", []), request)


def _timed(status: Tree, before: list[Tree], request: Request) -> Tree:
    """The status with the times that its conditions do not give."""
    now = format_time(request.now)
    since = {
        (condition.get("type"), condition.get("status")): condition.get("lastTransitionTime") or now
        for condition in reversed(before)
    }
    conditions = [
        condition
        | {
            "lastUpdateTime": condition.get("lastUpdateTime") or now,
            "lastTransitionTime": condition.get("lastTransitionTime")
            or since.get((condition.get("type"), condition.get("status")), now),
        }
        for condition in status["conditions"]
    ]
    timed = status | {"conditions": conditions}
    return timed if conditions else {field: value for field, value in timed.items() if field != "conditions"}


STRATEGIES = {
    GroupResource("certificates.k8s.io", "certificatesigningrequests"): Strategy(
        resets={
            MAIN: (*SPEC, *STATUS),
            "status": SPEC,
            "approval": (*SPEC, ("status", "certificate")),
        },
        prepare_create=_prepare_create,
        prepare_update={"status": _prepare_status, "approval": _prepare_approval},
    ),
}
