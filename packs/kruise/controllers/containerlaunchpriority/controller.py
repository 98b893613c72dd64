"""The controller of launch priorities: it adds the keys for which containers wait to a pod's barrier, a ConfigMap.

The key of the highest priority among the containers that are not ready comes next. The pod has an annotation when the lowest
key is there, because all of its containers can be started, and restarted, from then on.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import CONFIG_MAPS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Create, Patch, Plan
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.packs.kruise.kinds import CLONE_SETS
from mockube.packs.kruise.launch_priority import barrier_key, barrier_name, launch_priority

ANNOTATION_COMPLETED: Final = "apps.kruise.io/container-launch-priority-completed"
_STARTED: Final = "true"


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    pod = caches.of(PODS).get(*key)
    if pod is None or pod.deleting or pod.is_terminal or _is_completed(pod) or not _priorities(pod):
        return EMPTY_PLAN
    priorities = _priorities(pod, besides=_ready_containers(pod))
    barrier = caches.of(CONFIG_MAPS).get(key.namespace, barrier_name(key.name))
    if barrier is not None and _is_of_earlier_pod(barrier, pod):
        return EMPTY_PLAN  # the garbage collector deletes it
    keys: ReadOnlyTree = {} if barrier is None else barrier.get("data") or {}
    if not priorities or barrier_key(min(priorities)) in keys:
        return Plan(actions=(_complete(pod),))
    completion = (_complete(pod),) if min(priorities) == max(priorities) else ()
    return Plan(actions=(*_with_key(pod, barrier, barrier_key(max(priorities))), *completion))


def _is_completed(pod: PodView) -> bool:
    return meta.annotations(pod.object).get(ANNOTATION_COMPLETED) == "true"


def _priorities(pod: PodView, *, besides: Collection[str] = ()) -> list[int]:
    """Return the launch priorities of the pod's containers."""
    priorities = (
        launch_priority(container)
        for container in pod.object["spec"]["containers"]
        if container["name"] not in besides
    )
    return [priority for priority in priorities if priority is not None]


def _ready_containers(pod: PodView) -> set[str]:
    statuses = (pod.object.get("status") or {}).get("containerStatuses") or ()
    return {status["name"] for status in statuses if status.get("ready")}


def _is_of_earlier_pod(barrier: ReadOnlyTree, pod: PodView) -> bool:
    """Return whether the barrier belongs to an earlier pod of the same name."""
    owners = meta.owner_references(barrier)
    return bool(owners) and all(owner["uid"] != pod.uid for owner in owners)


def _with_key(pod: PodView, barrier: ReadOnlyTree | None, key: str) -> tuple[Action, ...]:
    data = {key: _STARTED}
    if barrier is None:
        return (Create(resource=CONFIG_MAPS, bodies=(_new_barrier(pod, data),)),)
    if key in (barrier.get("data") or {}):
        return ()
    body = {"metadata": {"uid": meta.uid(barrier)}, "data": data}
    return (Patch(resource=CONFIG_MAPS, key=Key.of(barrier), kind="strategic", body=body),)


def _new_barrier(pod: PodView, data: ReadOnlyTree) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.key.name, "uid": pod.uid}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": barrier_name(pod.key.name),
            "namespace": pod.key.namespace,
            "ownerReferences": [owner],
        },
        "data": data,
    }


def _complete(pod: PodView) -> Patch:
    metadata = {"uid": pod.uid, "annotations": {ANNOTATION_COMPLETED: "true"}}
    return Patch(resource=PODS, key=pod.key, kind="strategic", body={"metadata": metadata})


# --- watches


def _key_of_waiting_pod(_: Caches, change: Change) -> Iterable[Key]:
    pod: PodView | None = change.new
    if pod is None or len(pod.object["spec"]["containers"]) == 1 or _is_completed(pod):
        return ()
    return () if conditions.is_true(pod.object, "ContainersReady") or not _priorities(pod) else (pod.key,)


def _key_of_pod(_: Caches, change: Change) -> Iterable[Key]:
    """Map a barrier to its pod, which gets a new one if its barrier was deleted."""
    barrier = Key.of(change.last_known)
    pod_name = barrier.name.removesuffix(_SUFFIX)
    return (Key(barrier.namespace, pod_name),) if pod_name != barrier.name else ()


_SUFFIX: Final = barrier_name("")

CONTAINER_LAUNCH_PRIORITY: Final = Controller(
    name="container-launch-priority-controller",
    queue="container-launch-priority",
    service_account="",
    event_component="container-launch-priority-controller",
    metrics_name="container-launch-priority-controller",
    needs=(CLONE_SETS,),
    watches=(
        Watch(resource=PODS, keys=_key_of_waiting_pod),
        Watch(resource=CONFIG_MAPS, keys=_key_of_pod),
    ),
    reconcile=reconcile,
    workers=4,
)
