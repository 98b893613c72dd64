"""Decide which pods a CloneSet makes or deletes: one kind of action a round, so that each is decided on the last one."""

from collections.abc import Iterable, Sequence

from apimachinery.wellknown import REASON_FAILED_DELETE, REASON_SUCCESSFUL_DELETE
from controller_manager.controllers.cloneset import identity, order, storage
from controller_manager.controllers.cloneset.creation import creation
from controller_manager.controllers.cloneset.decision import NOTHING_TO_DO, Decision, side_by_side
from controller_manager.controllers.cloneset.diffs import Diffs
from controller_manager.controllers.cloneset.scene import Scene, is_preparing_delete
from controller_manager.kinds import PODS
from controller_manager.runtime.actions import Action, Delete, Say, Saying, Victim
from controller_manager.workloads.inplace import moves
from controller_manager.workloads.inplace.lifecycle import State
from controller_manager.workloads.podview import PodView


def plan(scene: Scene) -> Decision:
    if regretted := _regrets(scene):
        return Decision(actions=regretted, changes_pods=True)
    wanted = scene.diffs()
    if wanted.scale_up:
        made = creation(scene, wanted)
        return Decision(actions=(*_limited(scene, wanted), *made), changes_pods=bool(made))
    prepared = [pod for pod in scene.pods if is_preparing_delete(pod)]
    named = [pod for pod in scene.pods if scene.is_specified(pod) and not is_preparing_delete(pod)]
    ready_limit = wanted.delete_ready_limit
    gone = _removal(scene, prepared) or _removal(scene, _within(scene, named, ready_limit))
    if not gone and wanted.scale_down and not prepared and not named:
        gone = _removal(scene, _within(scene, _chosen(scene, wanted), ready_limit))
    return Decision(actions=gone, changes_pods=True) if gone else NOTHING_TO_DO


def _regrets(scene: Scene) -> tuple[Action, ...]:
    """Pods that nobody named are no longer prepared for their end if they are wanted again.

    Not where they are out of service already.
    """
    owner = scene.owner
    if owner.lifecycle.marks_not_ready:
        return ()
    prepared = [pod for pod in scene.pods if is_preparing_delete(pod)]
    planned = sum(is_preparing_delete(pod) or scene.is_specified(pod) for pod in scene.pods)
    missing = max(owner.limits.replicas - len(scene.pods) + planned, 0)
    wanted_again = [pod for pod in prepared if not scene.is_specified(pod)][:missing]
    return side_by_side(
        patch
        for pod in wanted_again
        for patch in moves.move(pod, State.PREPARING_NORMAL, owner.lifecycle, scene.now)
    )


def _limited(scene: Scene, wanted: Diffs) -> tuple[Say, ...]:
    if wanted.scale_up <= wanted.scale_up_limit:
        return ()
    limit = wanted.scale_up_limit
    message = f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {limit}"
    return (Say(about=scene.owner.object, type="Warning", reason="ScaleUpLimited", message=message),)


def _within(scene: Scene, pods: Iterable[PodView], ready_limit: int) -> list[PodView]:
    """Those that may go now: all that do not serve, and so many that do."""
    going, left = [], ready_limit
    for pod in pods:
        if not scene.is_serving(pod):
            going.append(pod)
        elif left > 0:
            going.append(pod)
            left -= 1
    return going


# --- who is deleted


def _chosen(scene: Scene, wanted: Diffs) -> list[PodView]:
    """Pods of the current revision first, as many as are beyond the partition."""
    old = [pod for pod in scene.pods if not scene.is_updated(pod)]
    new = [pod for pod in scene.pods if scene.is_updated(pod)]
    from_old = min(wanted.scale_down_old, wanted.scale_down)
    return [*_first(scene, old, from_old), *_first(scene, new, wanted.scale_down - from_old)]


def _first(scene: Scene, pods: Sequence[PodView], count: int) -> list[PodView]:
    if count >= len(pods):
        return [*pods]
    template = identity.template_of(scene.update)
    spread = (template.get("spec") or {}).get("topologySpreadConstraints") or ()
    topologies = [constraint["topologyKey"] for constraint in spread]
    ranks = order.by_topology(pods, topologies, scene.node_labels) if topologies else order.by_node(pods)
    return order.for_deletion(pods, scene.is_available, ranks)[:count]


# --- how they are deleted


def _removal(scene: Scene, pods: Sequence[PodView]) -> tuple[Action, ...]:
    """Pods that a hook holds are only prepared for their end. The claims of the others go with them."""
    hooks = scene.owner.lifecycle
    held = [pod for pod in pods if hooks.pre_delete is not None and hooks.pre_delete.holds(pod)]
    prepared = side_by_side(
        patch for pod in held for patch in moves.move(pod, State.PREPARING_DELETE, hooks, scene.now)
    )
    free = [pod for pod in pods if pod not in held]
    return (*prepared, *_deletion(scene, free), *storage.deletion(scene.owner, free, scene.claims))


def _deletion(scene: Scene, pods: Sequence[PodView]) -> tuple[Delete, ...]:
    if not pods:
        return ()
    saying = Saying(
        about=scene.owner.object,
        done=(REASON_SUCCESSFUL_DELETE, "succeed to delete pod {name}"),
        failed=(REASON_FAILED_DELETE, "failed to delete pod {name}: {error}"),
    )
    victims = tuple(Victim(pod.key, pod.uid) for pod in pods)
    return (Delete(resource=PODS, victims=victims, saying=saying),)
