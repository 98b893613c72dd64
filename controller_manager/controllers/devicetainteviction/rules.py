"""The status of DeviceTaintRules, which reports how many pods are evicted because of them, and both controllers as one part."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component import Runner
from mockube.client.component_helpers.device_claims import BY_RESOURCE_CLAIM, has_taint_rules
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.supervision import run_all
from mockube.controller_manager.control.actions import EMPTY_PLAN, Patch, Plan
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.control.runnable import Context, Runnable, WaitForKinds
from mockube.controller_manager.control.runner import ControllerRunner

from . import controller

PERIOD: Final = timedelta(seconds=10)
"""The least time between two updates of a rule's status, unless the rule was changed."""
_CONDITION: Final = "EvictionInProgress"


class EvictionCounts:
    """The number of pods that were evicted because of each rule, by the rule's uid."""

    def __init__(self) -> None:
        self._pods = Counter[str]()

    def add(self, rule: ReadOnlyTree) -> None:
        self._pods[meta.uid(rule)] += 1

    def of(self, rule: ReadOnlyTree) -> int:
        return self._pods[meta.uid(rule)]


def reconcile(counts: EvictionCounts, caches: Caches, key: Key, now: datetime) -> Plan:
    rule = caches.of(kinds.DEVICE_TAINT_RULES).get("", key.name)
    if rule is None:
        return EMPTY_PLAN
    present = conditions.get(rule, _CONDITION) or {}
    generation = meta.generation(rule)
    if present and present.get("observedGeneration", 0) == generation:
        due_at = parse_time(present["lastTransitionTime"]) + PERIOD
        if now < due_at:
            return Plan(requeue_after=due_at - now)
    condition = {"type": _CONDITION, **status_of_rule(caches, rule, counts.of(rule))}
    condition["observedGeneration"] = generation
    if all(present.get(name) == value for name, value in condition.items()):
        return EMPTY_PLAN
    body = {
        "apiVersion": kinds.DEVICE_TAINT_RULES.api_version,
        "kind": kinds.DEVICE_TAINT_RULES.kind,
        "metadata": {"name": key.name, "uid": meta.uid(rule)},
        "status": {"conditions": [{**condition, "lastTransitionTime": format_time(now)}]},
    }
    patch = Patch(
        resource=kinds.DEVICE_TAINT_RULES,
        key=key,
        body=body,
        kind="apply",
        subresource="status",
        field_manager=controller.NAME,
    )
    return Plan(actions=(patch,))


def status_of_rule(caches: Caches, rule: ReadOnlyTree, evicted: int) -> dict[str, Any]:
    """Return the status, the reason and the message of the condition of a rule."""
    effect = rule["spec"]["taint"].get("effect")
    status, reason, message = "False", "OtherEffect", "Eviction only happens for the NoExecute effect."
    if effect == "NoExecute":
        pods = [*_pods_to_evict(caches, rule)]
        reason, message = ("Completed" if evicted else "NotStarted"), ""
        if pods:
            status, reason = "True", "PodsPendingEviction"
            message = f"{_count(len(pods), 'pod')} {'needs' if len(pods) == 1 else 'need'} to be evicted in {_namespaces(pods)}."
    elif effect == "None":
        reason, message = "NoEffect", _effect_message(caches, rule)
    if evicted:
        message = f"{message}{message and ' '}{_count(evicted, 'pod')} evicted since starting the controller."
    return {"status": status, "reason": reason, "message": message}


def _effect_message(caches: Caches, rule: ReadOnlyTree) -> str:
    """Return what a rule without effect would do."""
    pods = [*_pods_to_evict(caches, rule)]
    published = _count(sum(1 for _ in _published_devices(caches, rule)), "published device")
    claims = caches.of(kinds.RESOURCE_CLAIMS).all()
    allocated = sum(
        controller.selects_result(rule, result) for claim in claims for result in controller.results_of(claim)
    )
    return (
        f"{published} selected. {_count(allocated, 'allocated device')} selected. "
        f"{_count(len(pods), 'pod')} would be evicted in {_namespaces(pods)} if the effect was NoExecute. "
        "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _namespaces(pods: Iterable[PodView]) -> str:
    number = len({pod.key.namespace for pod in pods})
    return "1 namespace" if number == 1 else f"{number} different namespaces"


def _pods_to_evict(caches: Caches, rule: ReadOnlyTree) -> Iterator[PodView]:
    """Yield the pods that are evicted if the effect of the rule is NoExecute."""
    keys = {
        str(Key.of(claim)): None
        for claim in caches.of(kinds.RESOURCE_CLAIMS).all()
        if controller.evicts(rule, controller.results_of(claim))
    }
    pods = {
        pod.key: pod for claim in keys for pod in caches.of(kinds.PODS).by_index(BY_RESOURCE_CLAIM, claim)
    }
    for pod in pods.values():
        if pod.node and not pod.deleting and controller.evicts(rule, controller.results_in_use(caches, pod)):
            yield pod


def _published_devices(caches: Caches, rule: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the devices that a rule selects in the newest slices of their pools."""
    newest: dict[tuple[str, str], int] = {}
    slices = [*caches.of(kinds.RESOURCE_SLICES).all()]
    for resource_slice in slices:
        pool = _pool(resource_slice)
        newest[pool] = max(newest.get(pool, 0), _generation(resource_slice))
    for resource_slice in slices:
        driver, pool_name = pool = _pool(resource_slice)
        if _generation(resource_slice) == newest[pool]:
            for device in resource_slice["spec"].get("devices") or ():
                if controller.selects_result(
                    rule, {"driver": driver, "pool": pool_name, "device": device["name"]}
                ):
                    yield device


def _pool(resource_slice: ReadOnlyTree) -> tuple[str, str]:
    return resource_slice["spec"]["driver"], resource_slice["spec"]["pool"]["name"]


def _generation(resource_slice: ReadOnlyTree) -> int:
    return int(resource_slice["spec"]["pool"].get("generation", 0))


# --- the keys that a change affects


def _changed_rule(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or controller.has_same_spec(change) else (Key.of(change.new),)


def _rules_of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    return [Key.of(rule) for rule in controller.evicting_rules(caches, change.last_known)]


def _rules_of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    users = caches.of(kinds.PODS).by_index(BY_RESOURCE_CLAIM, str(Key.of(change.last_known)))
    return {Key.of(rule): None for pod in users for rule in controller.evicting_rules(caches, pod)}


def taint_rule_status(counts: EvictionCounts) -> Controller:
    return Controller(
        name=controller.NAME,
        queue="device-taint-rule-status",
        service_account=controller.NAME,
        watches=(
            Watch(resource=kinds.DEVICE_TAINT_RULES, keys=_changed_rule),
            Watch(resource=kinds.PODS, keys=_rules_of_pod, delay=PERIOD),
            Watch(resource=kinds.RESOURCE_CLAIMS, keys=_rules_of_claim, delay=PERIOD),
            Watch(resource=kinds.RESOURCE_SLICES),
        ),
        reconcile=partial(reconcile, counts),
        workers=1,
    )


class _Runners:
    def __init__(self, pods: ControllerRunner, rules: ControllerRunner) -> None:
        self._pods, self._rules = pods, rules

    async def run(self) -> None:
        await run_all(pods=self._pods.run(), rules=self._rules.run())


def _build(context: Context) -> Runner:
    gates = context.informers.caches.gates
    workers = context.options.controllers.concurrent_device_taint_eviction_syncs

    def build() -> Runner:
        if not has_taint_rules(gates):
            return ControllerRunner(controller.device_taint_eviction(gates, workers), context)
        counts = EvictionCounts()
        pods = ControllerRunner(controller.device_taint_eviction(gates, workers, counts.add), context)
        return _Runners(pods, ControllerRunner(taint_rule_status(counts), context))

    rules = (kinds.DEVICE_TAINT_RULES,) if has_taint_rules(gates) else ()
    return WaitForKinds((kinds.RESOURCE_CLAIMS, kinds.RESOURCE_SLICES, *rules), build, context)


DEVICE_TAINT_EVICTION: Final = Runnable(name=controller.NAME, service_account=controller.NAME, build=_build)
