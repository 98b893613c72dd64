"""The controller that sets the condition DisruptionTarget to False on pods that were not disrupted after all."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import after, parse_time
from mockube.apimachinery.wellknown import CONDITION_DISRUPTION_TARGET
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch

_TIMEOUT: Final = timedelta(minutes=2)
_BY_KUBELET: Final = "TerminationByKubelet"
"""The reason of a condition that is never stale: a kubelet may take long to end a pod."""


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    pod = caches.of(PODS).get(*key)
    target_time = None if pod is None else _disruption_target_time(pod)
    if pod is None or target_time is None:
        return EMPTY_PLAN
    if after(target_time, _TIMEOUT) > now:
        return Plan(requeue_after=after(target_time, _TIMEOUT) - now)
    generation = meta.generation(pod.object)
    condition = {"type": CONDITION_DISRUPTION_TARGET, "status": "False", "observedGeneration": generation}
    body = conditions.with_condition(pod.object, condition, now)
    return Plan(actions=(Update(resource=PODS, body=body, subresource="status"),))


def _disruption_target_time(pod: PodView) -> datetime | None:
    """Return the time of the pod's condition DisruptionTarget; None if it is not true, or if the pod is being deleted."""
    condition = conditions.get(pod.object, CONDITION_DISRUPTION_TARGET)
    if condition is None or condition["status"] != "True" or condition.get("reason") == _BY_KUBELET:
        return None
    if pod.deleting or pod.is_terminal or not condition.get("lastTransitionTime"):
        return None
    return parse_time(condition["lastTransitionTime"])


def _pod_key(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or _disruption_target_time(change.new) is None else (change.new.key,)


STALE_POD_DISRUPTION: Final = Controller(
    name="stale-pod-disruption-controller",
    queue="stale_pod_disruption",
    service_account="disruption-controller",
    watches=(Watch(resource=PODS, keys=_pod_key),),
    reconcile=reconcile,
    workers=1,
)
