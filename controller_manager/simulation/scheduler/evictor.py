"""Make the victims of a preemption go: say why in their status, delete them, and tell in an event."""

from datetime import datetime
from typing import Final

from apimachinery import conditions, meta
from apimachinery.status import NotFound
from controller_manager.kinds import PODS
from controller_manager.runtime.client import Client
from controller_manager.runtime.events.recorder import Recorder
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.preemption import Candidate

_DISRUPTED: Final = "DisruptionTarget"


async def evict(client: Client, events: Recorder, pod: PodInfo, chosen: Candidate, now: datetime) -> None:
    for victim in chosen.victims:
        try:
            await _evict(client, pod, victim, now)
        except NotFound:
            continue
        text = f"Preempted by pod {pod.view.uid} on node {chosen.node}"
        about, by = victim.view.object, pod.view.object
        events.say(about, "Normal", "Preempted", text, action="Preempting", related=by)


async def _evict(client: Client, pod: PodInfo, victim: PodInfo, now: datetime) -> None:
    view = victim.view
    condition = {
        "type": _DISRUPTED,
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{pod.spec['schedulerName']}: preempting to accommodate a higher priority pod",
        "observedGeneration": meta.generation(view.object),
    }
    told = conditions.updated(conditions.of(view.object), condition, now)
    patch = {"metadata": {"uid": view.uid}, "status": {"conditions": told}}
    await client.patch(PODS, view.key, patch, subresource="status")
    await client.delete(PODS, view.key, uid=view.uid)
