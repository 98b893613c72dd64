"""Decide which pods a ReplicaSet makes or deletes."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from apimachinery.wellknown import (
    REASON_FAILED_CREATE,
    REASON_FAILED_DELETE,
    REASON_SUCCESSFUL_CREATE,
    REASON_SUCCESSFUL_DELETE,
)
from controller_manager.controllers.replicaset.observe import Scene
from controller_manager.kinds import PODS
from controller_manager.runtime.actions import Action, Create, Delete, Saying, Victim
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.ranking import first_to_go
from controller_manager.workloads.templates import pod_of

BURST_REPLICAS: Final = 500
"""How many pods one plan makes or deletes at most; the next one goes on when these are seen."""


def plan(scene: Scene, kin: Callable[[], Iterable[PodView]], now: datetime) -> tuple[Action, ...]:
    """`kin` is asked only if there is a choice of whom to delete."""
    surplus = len(scene.active) - scene.replicas
    if surplus < 0:
        return (_creation(scene, min(-surplus, BURST_REPLICAS)),)
    if surplus > 0:
        return (_deletion(scene, first_to_go(scene.active, min(surplus, BURST_REPLICAS), kin(), now)),)
    return ()


def _creation(scene: Scene, count: int) -> Create:
    saying = Saying(
        about=scene.owner,
        done=(REASON_SUCCESSFUL_CREATE, "Created pod: {name}"),
        failed=(REASON_FAILED_CREATE, "Error creating: {error}"),
    )
    return Create(resource=PODS, bodies=(pod_of(scene.template, scene.owner),) * count, saying=saying)


def _deletion(scene: Scene, pods: Iterable[PodView]) -> Delete:
    saying = Saying(
        about=scene.owner,
        done=(REASON_SUCCESSFUL_DELETE, "Deleted pod: {name}"),
        failed=(REASON_FAILED_DELETE, "Error deleting: {error}"),
    )
    return Delete(resource=PODS, victims=tuple(Victim(pod.key, pod.uid) for pod in pods), saying=saying)
