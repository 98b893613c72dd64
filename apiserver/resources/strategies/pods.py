"""Pods: they begin pending, are written in five ways, and end gracefully on their node."""

from collections import defaultdict, deque
from typing import Any

from apimachinery import conditions
from apimachinery.groups import GroupResource
from apimachinery.wellknown import CONDITION_POD_SCHEDULED
from apiserver.resources.strategies.apparmor import take_annotations
from apiserver.resources.strategies.label_keys import complete_selectors
from apiserver.resources.strategies.qos import qos_class
from apiserver.resources.strategy import MAIN, SPEC, STATUS, Request, Strategy, Tree

TERMINAL = frozenset({"Succeeded", "Failed"})

_GATED = {
    "type": CONDITION_POD_SCHEDULED,
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _prepare_create(pod: Tree, request: Request) -> None:
    pod.setdefault("spec", {})
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod)}
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = conditions.updated((), _GATED, request.now)
    complete_selectors(pod)
    take_annotations(pod, request)


def _prepare_status(new: Tree, old: Tree, _request: Request) -> None:
    """Keep what an older kubelet does not know of, and would otherwise drop."""
    status, before = dict(new.get("status") or {}), old.get("status") or {}
    for field in ("qosClass", "observedGeneration"):
        if field in before:
            status.setdefault(field, before[field])
    if status.get("conditions"):
        status["conditions"] = _observed(status["conditions"], before.get("conditions", ()))
    new["status"] = status


def _observed(new: list[Tree], old: list[Tree]) -> list[Tree]:
    """Conditions with the generation that they were last seen to be of. There may be several of one type."""
    generations: defaultdict[str, deque[Any]] = defaultdict(deque)
    for condition in old:
        generations[condition.get("type", "")].append(condition.get("observedGeneration"))
    observed = []
    for condition in new:
        of_type = generations[condition.get("type", "")]
        generation = of_type.popleft() if of_type else None
        known = "observedGeneration" in condition or generation is None
        observed.append(condition if known else condition | {"observedGeneration": generation})
    return observed


def _grace(pod: Tree, asked: int | None) -> int:
    """As long as is asked for, or as the pod itself wants; none if nothing runs, or nothing any more."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in TERMINAL:
        return 0
    period: int = spec.get("terminationGracePeriodSeconds", 0) if asked is None else asked
    return 1 if period < 0 else period


PODS = Strategy(
    resets={MAIN: STATUS, "status": (*SPEC, ("metadata", "ownerReferences"))},
    only={
        "ephemeralcontainers": (("spec", "ephemeralContainers"),),
        "resize": (
            ("spec", "resources"),
            ("spec", "containers", "*", "resources"),
            ("spec", "containers", "*", "resizePolicy"),
            ("spec", "initContainers", "*", "resources"),
            ("spec", "initContainers", "*", "resizePolicy"),
        ),
    },
    generation=SPEC,
    first_generation=1,
    prepare_create=_prepare_create,
    prepare_update={"status": _prepare_status},
    grace=_grace,
    returns_deleted=True,
)

STRATEGIES = {GroupResource("", "pods"): PODS}
