"""Take back the condition DisruptionTarget of pods that were to be disrupted, and were not."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from apimachinery import conditions
from apimachinery.timestamps import parse_time
from apimachinery.wellknown import CONDITION_DISRUPTION_TARGET
from controller_manager.kinds import PODS
from controller_manager.runtime.actions import NOTHING, Plan, Update
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import Controller, Watch
from controller_manager.runtime.resource import Key
from controller_manager.workloads.podview import PodView

_TIMEOUT: Final = timedelta(minutes=2)
_BY_KUBELET: Final = "TerminationByKubelet"
"""A kubelet takes its time to end a pod; what it says is never stale."""


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    pod = caches.of(PODS).get(*key)
    since = None if pod is None else _target_since(pod)
    if pod is None or since is None:
        return NOTHING
    if since + _TIMEOUT > now:
        return Plan(again_after=since + _TIMEOUT - now)
    refuted = {"type": CONDITION_DISRUPTION_TARGET, "status": "False"}
    body = conditions.with_condition(pod.object, refuted, now)
    return Plan(actions=(Update(resource=PODS, body=body, subresource="status"),))


def _target_since(pod: PodView) -> datetime | None:
    """Since when it is to be disrupted; None if it is not, or if it is going."""
    condition = conditions.get(pod.object, CONDITION_DISRUPTION_TARGET)
    if condition is None or condition["status"] != "True" or condition.get("reason") == _BY_KUBELET:
        return None
    if pod.deleting or pod.is_terminal or not condition.get("lastTransitionTime"):
        return None
    return parse_time(condition["lastTransitionTime"])


def _of_pod(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or _target_since(change.new) is None else (change.new.key,)


STALE_POD_DISRUPTION: Final = Controller(
    name="stale-pod-disruption-controller",
    queue="stale_pod_disruption",
    service_account="disruption-controller",
    watches=(Watch(resource=PODS, keys=_of_pod),),
    reconcile=reconcile,
    workers=1,
)
