"""The device taint eviction controller: it deletes pods with NoExecute taints on their devices, after the toleration."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers import device_claims
from mockube.client.component_helpers.device_claims import NotCreated
from mockube.client.component_helpers.disruption import disruption_status
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager import metric_families as families
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Delete,
    ObjectRef,
    Patch,
    Plan,
    PlanResult,
    RecordEvent,
    Remember,
)
from mockube.controller_manager.control.controller import Controller, OutcomeMetrics, Watch
from mockube.controller_manager.control.executor import ignore

_BY_POOL: Final = "device-pool"
_REASON: Final = "DeviceTaintManagerEviction"
_CONDITION: Final = (
    "DeletionByDeviceTaintManager",
    "Device Taint manager: deleting due to NoExecute taint",
)


def reconcile(
    note_eviction: Callable[[ReadOnlyTree], None],
    caches: Caches,
    key: Key,
    now: datetime,
    is_pending: object = None,
) -> Plan:
    pod = caches.of(kinds.PODS).get(*key)
    if pod is None or pod.deleting:
        return Plan(actions=(Remember(None),)) if is_pending else EMPTY_PLAN
    evicted_at = eviction_time(caches, pod)
    if evicted_at is None:
        cancellation = (Remember(None), _event(pod, "Cancelling deletion"))
        return Plan(actions=cancellation) if is_pending else EMPTY_PLAN
    if evicted_at > now:
        memory_actions = () if is_pending else (Remember(now),)
        return Plan(actions=memory_actions, requeue_after=evicted_at - now)
    actions: list[Action] = [Remember(None), _event(pod, "Marking for deletion")]
    if status := disruption_status(pod.object, *_CONDITION, now):
        body = {"metadata": {"uid": pod.uid}, "status": status}
        actions.append(
            Patch(resource=kinds.PODS, key=pod.key, body=body, kind="strategic", subresource="status")
        )
    ref = ObjectRef(pod.key, pod.uid)
    rules = [*evicting_rules(caches, pod)]

    def note_rules(outcome: PlanResult) -> None:
        for rule in rules if outcome.error is None else ():
            note_eviction(rule)

    return Plan(actions=(*actions, Delete(resource=kinds.PODS, objects=(ref,))), then=note_rules)


def evicting_rules(caches: Caches, pod: PodView) -> Iterator[ReadOnlyTree]:
    """Yield the rules because of which a pod is evicted, now or after its toleration."""
    if not pod.node or not device_claims.pod_claims(pod):
        return
    results = [*results_in_use(caches, pod)]
    for rule in taint_rules(caches):
        if rule["spec"]["taint"].get("effect") == "NoExecute" and evicts(rule, results):
            yield rule


def evicts(rule: ReadOnlyTree, results: Iterable[ReadOnlyTree]) -> bool:
    """Return whether the taint of a rule, as NoExecute, is not tolerated for ever by one of these devices' claims."""
    taint = {**rule["spec"]["taint"], "effect": "NoExecute"}
    return any(
        selects_result(rule, result) and end_of_toleration(result, taint) is not None for result in results
    )


def _event(pod: PodView, message: str) -> RecordEvent:
    return RecordEvent(about=pod.object, type="Normal", reason=_REASON, message=message)


def eviction_time(caches: Caches, pod: PodView) -> datetime | None:
    """Return the time when the toleration of the first device taint ends; None for a pod that is not evicted."""
    if not pod.node or not device_claims.pod_claims(pod):
        return None
    times = [
        time
        for result in results_in_use(caches, pod)
        for taint in (*_taints(caches, result), *_taints_of_rules(caches, result))
        if (time := end_of_toleration(result, taint)) is not None
    ]
    return min(times, default=None)


def results_in_use(caches: Caches, pod: PodView) -> Iterator[ReadOnlyTree]:
    """Yield the allocated devices of the claims that are reserved for a pod."""
    for claim in _claims_in_use(caches, pod):
        yield from results_of(claim)


def _claims_in_use(caches: Caches, pod: PodView) -> Iterator[ReadOnlyTree]:
    for pod_claim in device_claims.pod_claims(pod):
        try:
            name = device_claims.claim_name(pod, pod_claim)
        except NotCreated:
            continue
        claim = None if name is None else caches.of(kinds.RESOURCE_CLAIMS).get(pod.key.namespace, name)
        if claim is None or not device_claims.is_reserved_for(pod, claim):
            continue
        if not pod_claim.get("resourceClaimTemplateName") or device_claims.is_for_pod(pod, claim):
            yield claim


def results_of(claim: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    """Return the allocated devices of a claim."""
    return ((device_claims.allocation(claim) or {}).get("devices") or {}).get("results") or ()


def taint_rules(caches: Caches) -> Iterable[ReadOnlyTree]:
    return caches.of(kinds.DEVICE_TAINT_RULES).all() if device_claims.has_taint_rules(caches.gates) else ()


def _taints_of_rules(caches: Caches, result: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    for rule in taint_rules(caches):
        if rule["spec"]["taint"].get("effect") == "NoExecute" and selects_result(rule, result):
            yield rule["spec"]["taint"]


def selects_result(rule: ReadOnlyTree, result: ReadOnlyTree) -> bool:
    return device_claims.rule_selects(rule, result["driver"], result["pool"], result["device"])


def _taints(caches: Caches, result: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the NoExecute taints of a device from the newest slices of its pool."""
    slices = caches.of(kinds.RESOURCE_SLICES).by_index(_BY_POOL, f"{result['driver']}/{result['pool']}")
    newest = max(
        (resource_slice["spec"]["pool"].get("generation", 0) for resource_slice in slices), default=0
    )
    for resource_slice in slices:
        if resource_slice["spec"]["pool"].get("generation", 0) != newest:
            continue
        for device in resource_slice["spec"].get("devices") or ():
            if device["name"] == result["device"]:
                taints = device.get("taints") or ()
                yield from (taint for taint in taints if taint.get("effect") == "NoExecute")


def end_of_toleration(result: ReadOnlyTree, taint: ReadOnlyTree) -> datetime | None:
    """Return the time when the toleration of a taint ends; None if it is tolerated for ever."""
    tolerations = [
        toleration
        for toleration in result.get("tolerations") or ()
        if toleration.get("effect") == "NoExecute" and device_claims.tolerates_taint(toleration, taint)
    ]
    if any("tolerationSeconds" not in toleration for toleration in tolerations) or not taint.get("timeAdded"):
        return None
    seconds = min((max(toleration["tolerationSeconds"], 0) for toleration in tolerations), default=0)
    return after(parse_time(taint["timeAdded"]), span_of(seconds))


# --- the keys that a change affects


def _pod_key(_: Caches, change: Change) -> Iterable[Key]:
    pod: PodView = change.last_known
    return (pod.key,) if device_claims.pod_claims(pod) else ()


def _pods_of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the pods that use a claim."""
    users = caches.of(kinds.PODS).by_index(device_claims.BY_RESOURCE_CLAIM, str(Key.of(change.last_known)))
    return [pod.key for pod in users]


def _pods_of_slice(caches: Caches, change: Change) -> Iterable[Key]:
    for pool in {
        pool
        for resource_slice in change
        if resource_slice is not None
        for pool in _pool_of_slice(resource_slice)
    }:
        for claim in caches.of(kinds.RESOURCE_CLAIMS).by_index(_BY_POOL, pool):
            yield from _pods_of_claim(caches, Change(None, claim))


def _pool_of_slice(resource_slice: ReadOnlyTree) -> Iterable[str]:
    return (f"{resource_slice['spec']['driver']}/{resource_slice['spec']['pool']['name']}",)


def _pools_of_claim(claim: ReadOnlyTree) -> Iterable[str]:
    return dict.fromkeys(f"{result['driver']}/{result['pool']}" for result in results_of(claim))


def _pods_of_rule(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the pods with devices that a rule taints, or tainted before. Rules change rarely."""
    if has_same_spec(change):
        return
    rules = [rule for rule in change if rule is not None]
    for claim in caches.of(kinds.RESOURCE_CLAIMS).all():
        if any(selects_result(rule, result) for rule in rules for result in results_of(claim)):
            yield from _pods_of_claim(caches, Change(None, claim))


def has_same_spec(change: Change) -> bool:
    """Return whether a change is an update that does not affect the spec."""
    return (
        change.old is not None and change.new is not None and bool(change.old["spec"] == change.new["spec"])
    )


class EvictionMetrics(OutcomeMetrics):
    def __init__(self, metrics: MetricsRegistry) -> None:
        self._deletions = metrics.numbers(families.DEVICE_EVICTIONS).of()

    def observe(self, primary: Any, outcome: PlanResult, seconds: float, now: datetime) -> None:  # noqa: ARG002
        self._deletions.value += len(outcome.of(Delete))


NAME: Final = "device-taint-eviction-controller"


def device_taint_eviction(
    gates: FeatureGates, workers: int = 8, note_eviction: Callable[[ReadOnlyTree], None] = ignore
) -> Controller:
    """Return the controller of pods; `note_eviction` is called with each rule because of which a pod was evicted."""
    rules = (
        (Watch(resource=kinds.DEVICE_TAINT_RULES, keys=_pods_of_rule),)
        if device_claims.has_taint_rules(gates)
        else ()
    )
    return Controller(
        name=NAME,
        queue=NAME,
        service_account=NAME,
        event_component=NAME,
        watches=(
            Watch(resource=kinds.PODS, keys=_pod_key),
            Watch(resource=kinds.RESOURCE_CLAIMS, keys=_pods_of_claim),
            Watch(resource=kinds.RESOURCE_SLICES, keys=_pods_of_slice),
            *rules,
        ),
        indexes={
            kinds.PODS: {device_claims.BY_RESOURCE_CLAIM: device_claims.claims_of_pod},
            kinds.RESOURCE_CLAIMS: {_BY_POOL: _pools_of_claim},
            kinds.RESOURCE_SLICES: {_BY_POOL: _pool_of_slice},
        },
        reconcile=partial(reconcile, note_eviction),
        has_memory=True,
        outcome_metrics=EvictionMetrics,
        workers=workers,
    )
