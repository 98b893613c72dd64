"""The conditions of a pod that its kubelet sets. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta, wellknown
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import FAILED, SUCCEEDED

CONDITION_READY_TO_START: Final = "PodReadyToStartContainers"
_OF_KUBELET: Final = frozenset(
    {
        CONDITION_READY_TO_START,
        wellknown.CONDITION_INITIALIZED,
        wellknown.CONDITION_READY,
        wellknown.CONDITION_CONTAINERS_READY,
        wellknown.CONDITION_POD_SCHEDULED,
    }
)
_SANDBOX_REASON_SINCE: Final = 37
"""The minor version since which kubelets say why a pod is not ready to start its containers."""


class PodState(Struct, frozen=True, kw_only=True):
    """The state of a pod that determines its conditions."""

    phase: str
    not_initialized: Sequence[str]
    """The names of the init containers that are not done."""
    not_ready: Sequence[str]
    """The names of the main containers and sidecars that are not ready."""
    has_sandbox_condition: bool
    """Whether the pod has the condition PodReadyToStartContainers."""
    has_sandbox: bool = True
    kubelet_minor: int = 0


def kubelet_conditions(pod: ReadOnlyTree, state: PodState, now: datetime) -> list[ReadOnlyTree]:
    """Return all conditions of the pod: first those of the kubelet, updated and in its order, then the others."""
    desired = [
        _initialized_condition(state),
        _ready_condition(pod, state),
        _containers_ready(state),
        _true_condition(wellknown.CONDITION_POD_SCHEDULED),
    ]
    if state.has_sandbox_condition:
        desired.insert(0, _ready_to_start(state))
    present: list[ReadOnlyTree] = list(conditions.of(pod))
    for condition in desired:
        observed = {**condition, "observedGeneration": meta.generation(pod)}
        present = conditions.set_condition(present, observed, now)
    order = [condition["type"] for condition in desired]
    return sorted(
        present,
        key=lambda present_condition: (
            order.index(present_condition["type"]) if present_condition["type"] in order else len(order)
        ),
    )


def observed_conditions(pod: ReadOnlyTree) -> list[ReadOnlyTree]:
    """Return all conditions of the pod; those of the kubelet are for its present generation."""
    generation = {"observedGeneration": meta.generation(pod)}
    return [
        {**condition, **generation} if condition["type"] in _OF_KUBELET else condition
        for condition in conditions.of(pod)
    ]


def _ready_to_start(state: PodState) -> dict[str, Any]:
    if state.has_sandbox and state.phase not in (SUCCEEDED, FAILED):
        return _true_condition(CONDITION_READY_TO_START)
    if state.kubelet_minor < _SANDBOX_REASON_SINCE:
        return {"type": CONDITION_READY_TO_START, "status": "False"}
    message = "pod sandbox is not ready" if state.has_sandbox else "no pod sandbox exists"
    return _false_condition(CONDITION_READY_TO_START, "PodSandboxNotReady", message)


def _true_condition(condition_type: str) -> dict[str, Any]:
    return {"type": condition_type, "status": "True"}


def _false_condition(condition_type: str, reason: str, message: str = "") -> dict[str, Any]:
    details = {"message": message} if message else {}
    return {"type": condition_type, "status": "False", "reason": reason, **details}


def _initialized_condition(state: PodState) -> dict[str, Any]:
    if state.phase == SUCCEEDED:
        return {**_true_condition(wellknown.CONDITION_INITIALIZED), "reason": "PodCompleted"}
    if not state.not_initialized:
        return _true_condition(wellknown.CONDITION_INITIALIZED)
    message = f"containers with incomplete status: {_list_text(state.not_initialized)}"
    return _false_condition(wellknown.CONDITION_INITIALIZED, "ContainersNotInitialized", message)


def _containers_ready(
    state: PodState, condition_type: str = wellknown.CONDITION_CONTAINERS_READY
) -> dict[str, Any]:
    if state.phase == SUCCEEDED:
        return _false_condition(condition_type, "PodCompleted")
    if state.phase == FAILED:
        return _false_condition(condition_type, "PodFailed")
    if not state.not_ready:
        return _true_condition(condition_type)
    message = f"containers with unready status: {_list_text(state.not_ready)}"
    return _false_condition(condition_type, "ContainersNotReady", message)


def _ready_condition(pod: ReadOnlyTree, state: PodState) -> dict[str, Any]:
    containers = _containers_ready(state, wellknown.CONDITION_READY)
    gates = pod["spec"].get("readinessGates") or ()
    problems = [problem for gate in gates if (problem := _gate_problem(pod, gate["conditionType"]))]
    if containers["status"] == "False" or not problems:
        return containers
    return _false_condition(wellknown.CONDITION_READY, "ReadinessGatesNotReady", ", ".join(problems))


def _gate_problem(pod: ReadOnlyTree, gate: str) -> str:
    condition = conditions.get(pod, gate)
    if condition is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if condition["status"] == "True":
        return ""
    return f'the status of pod readiness gate "{gate}" is not "True", but {condition["status"]}'


def _list_text(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"
