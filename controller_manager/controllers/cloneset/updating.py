"""Decide which pods of a CloneSet get the update revision now, and how: in place, or by being made anew."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from apimachinery import meta
from apimachinery.wellknown import LABEL_SPECIFIED_DELETE
from controller_manager.controllers.cloneset import identity, order, storage
from controller_manager.controllers.cloneset.decision import Decision, earliest, side_by_side
from controller_manager.controllers.cloneset.diffs import Diffs
from controller_manager.controllers.cloneset.scene import Scene, is_preparing_delete
from controller_manager.kinds import PODS
from controller_manager.runtime.actions import Patch, Saying
from controller_manager.workloads.inplace import lifecycle, record, turn
from controller_manager.workloads.inplace.change import Change, change_between
from controller_manager.workloads.inplace.lifecycle import State
from controller_manager.workloads.inplace.update import Order, Step
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.update_order import by_priority, scattered


class _Begun(NamedTuple):
    """Updates that begin, and why not all do that should."""

    patches: tuple[Patch, ...] = ()
    problem: str = ""


def plan(scene: Scene) -> Decision:
    """What pods have come to by themselves is told first, be the update paused or not."""
    steps = [_tended(scene, pod) for pod in scene.pods]
    begun = _Begun() if scene.owner.paused else _begun(scene, _chosen(scene))
    tended = turn.undisturbed((patch for step in steps for patch in step.patches), begun.patches)
    patches = tended or begun.patches
    return Decision(
        actions=side_by_side(patches),
        changes_pods=bool(patches),
        again_after=earliest(*(step.again_after for step in steps)),
        problem="" if tended else begun.problem,
    )


def _tended(scene: Scene, pod: PodView) -> Step:
    hooks, revision = scene.owner.lifecycle, identity.revision_of(pod)
    return turn.tended(pod, hooks, scene.now, revision=revision, wanted=scene.update_name)


# --- which pods


def _chosen(scene: Scene) -> list[PodView]:
    wanted = scene.diffs()
    return _limited(scene, wanted, _in_order(scene, _candidates(scene))) if wanted.update else []


def _candidates(scene: Scene) -> list[PodView]:
    return [
        pod
        for pod in scene.pods
        if not scene.is_updated(pod) and not is_preparing_delete(pod) and not record.is_waiting(pod)
    ]


def _in_order(scene: Scene, waiting: Sequence[PodView]) -> list[PodView]:
    """Pods that are prepared already come first."""
    owner = scene.owner
    ordered = by_priority(order.for_update(waiting), owner.priority)
    if owner.scatter:
        ordered = scattered(ordered, scene.pods, owner.scatter)
    return sorted(ordered, key=lambda pod: lifecycle.state_of(pod) != State.PREPARING_UPDATE)


def _limited(scene: Scene, wanted: Diffs, waiting: Sequence[PodView]) -> list[PodView]:
    """As many as may be unavailable; a pod that is so already makes none the more, but the new ones may not be too many."""
    unavailable = [pod for pod in scene.pods if not scene.is_available(pod)]
    new_unavailable = sum(scene.is_updated(pod) for pod in unavailable)
    total, taken = len(unavailable), list[PodView]()
    for pod in waiting[: wanted.update]:
        if new_unavailable + len(taken) >= wanted.update_max_unavailable:
            break
        if scene.is_available(pod):
            if total >= wanted.update_max_unavailable:
                break
            total += 1
        taken.append(pod)
    return taken


# --- how


def _begun(scene: Scene, pods: Sequence[PodView]) -> _Begun:
    patches: list[Patch] = []
    for pod in pods:
        update_of = _update(scene, pod)
        if update_of is None:
            problem = f"find Pod {pod.key.name} update strategy is InPlaceOnly but can not update in-place"
            return _Begun(tuple(patches), problem)
        patches += update_of
    return _Begun(tuple(patches))


def _update(scene: Scene, pod: PodView) -> tuple[Patch, ...] | None:
    """None if the pod would have to be updated in place, and cannot be."""
    if scene.owner.update_type == "ReCreate":
        return _recreated(scene, pod)
    change = _change(scene, pod)
    if change is not None:
        ordered = Order(
            change=change,
            labels=identity.revision_labels(scene.update_name),
            grace_seconds=scene.owner.grace_seconds,
        )
        return turn.changed(pod, scene.owner.lifecycle, ordered, scene.now, _saying(scene, "InPlace"))
    return None if scene.owner.update_type == "InPlaceOnly" else _recreated(scene, pod)


def _change(scene: Scene, pod: PodView) -> Change | None:
    old = next((it for it in scene.history if identity.has_revision(pod, meta.name(it))), None)
    if old is None:
        return None
    if scene.owner.update_type != "InPlaceOnly" and not storage.has_same_claims(old, scene.update):
        return None
    return change_between(identity.template_of(old), identity.template_of(scene.update), scene.update_name)


def _recreated(scene: Scene, pod: PodView) -> tuple[Patch, ...]:
    """Named as one that is to go; the next round deletes it, and makes another."""
    if LABEL_SPECIFIED_DELETE in pod.labels:
        return ()
    body = {"metadata": {"uid": pod.uid, "labels": {LABEL_SPECIFIED_DELETE: "true"}}}
    saying = _saying(scene, "ReCreate")
    return (Patch(resource=PODS, key=pod.key, kind="strategic", body=body, saying=saying),)


_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "InPlace": ("update pod {name} in-place", "update pod {name} in-place"),
    "ReCreate": (
        "patch pod {name} specified-delete for update",
        "patch pod specified-delete {name} for update",
    ),
}
"""What was done and what failed, in upstream's words."""


def _saying(scene: Scene, how: str) -> Saying:
    done, failed = _TEXTS[how]
    revision = f"(revision {scene.update_name})"
    return Saying(
        about=scene.owner.object,
        done=(f"SuccessfulUpdatePod{how}", f"successfully {done}{revision}"),
        failed=(f"FailedUpdatePod{how}", f"failed to {failed}{revision}: {{error}}"),
    )
