"""Give a Deployment's ReplicaSets other sizes because it was scaled, not because it rolls.

In mid-rollout each set grows or shrinks by its share, so that scaling neither speeds the rollout up nor turns it back.
Pure arithmetic: sizes by name of set; what is not named keeps its size.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import copysign

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import REASON_SCALING_REPLICA_SET
from mockube.controller_manager.client.kinds import REPLICA_SETS
from mockube.controller_manager.control.actions import EventTemplate, Update
from mockube.controller_manager.controllers.deployment.observe import DeploymentState
from mockube.controller_manager.controllers.deployment.revision import size_annotations
from mockube.controller_manager.controllers.deployment.state import DeploymentView, SetView

Sizes = Mapping[str, int]


def is_scaled(state: DeploymentState) -> bool:
    """Whether a set was sized for another number of replicas than the Deployment's."""
    desired = state.deployment.replicas
    return any(replica_set.desired_annotation not in (None, desired) for replica_set in active(state.sets))


def active(sets: Iterable[SetView]) -> list[SetView]:
    return [replica_set for replica_set in sets if replica_set.replicas > 0]


def sizes(state: DeploymentState) -> Sizes:
    """Of a Deployment that was scaled, or is paused."""
    deployment, running = state.deployment, active(state.sets)
    if not state.sets:
        return {}
    if len(running) <= 1:
        only = running[0] if running else state.new or state.old_sets[-1]
        return {only.name: deployment.replicas}
    if state.new is not None and is_saturated(deployment, state.new):
        return {old.name: 0 for old in active(state.old_sets)}
    return _in_proportion(deployment, running) if deployment.rolls else {}


def is_saturated(deployment: DeploymentView, new: SetView) -> bool:
    """Whether the set has all replicas of the Deployment, and its status is current."""
    return new.replicas == new.desired_annotation == new.available == deployment.replicas


def _in_proportion(deployment: DeploymentView, running: Sequence[SetView]) -> Sizes:
    """In proportion to the sets' sizes, the largest first; the largest also takes the remainder of rounding."""
    allowed = deployment.max_replicas if deployment.replicas > 0 else 0
    to_add = allowed - sum(replica_set.replicas for replica_set in running)
    by_age = sorted(running, key=lambda replica_set: replica_set.age, reverse=to_add > 0)
    largest_first = sorted(by_age, key=lambda replica_set: -replica_set.replicas)
    sizes: dict[str, int] = {}
    added = 0
    for replica_set in largest_first:
        share = _share(deployment, replica_set, to_add, added)
        sizes[replica_set.name] = replica_set.replicas + share
        added += share
    largest = largest_first[0].name
    return {**sizes, largest: max(sizes[largest] + to_add - added, 0)}


def _share(deployment: DeploymentView, of: SetView, to_add: int, added: int) -> int:
    if to_add == added:
        return 0
    limit = min if to_add > 0 else max
    return limit(_fraction(deployment, of), to_add - added)


def _fraction(deployment: DeploymentView, of: SetView) -> int:
    """By how much the set would change if it kept its part of all pods."""
    if deployment.replicas == 0:
        return -of.replicas
    before = of.max_annotation or deployment.status.get("replicas") or 0
    if before == 0:
        return 0
    return _round(of.replicas * deployment.max_replicas / before) - of.replicas


def _round(number: float) -> int:
    """A half is rounded away from zero."""
    return int(number + copysign(0.5, number))


# --- sizes as writes


def resize_actions(deployment: DeploymentView, sets: Iterable[SetView], sizes: Sizes) -> tuple[Update, ...]:
    """The updates that resize sets, each with an Event of the Deployment."""
    chosen = [
        replica_set
        for replica_set in sets
        if sizes.get(replica_set.name, replica_set.replicas) != replica_set.replicas
    ]
    return tuple(_resize(deployment, replica_set, sizes[replica_set.name]) for replica_set in chosen)


def desired_replicas_actions(
    deployment: DeploymentView, sets: Iterable[SetView], sizes: Sizes
) -> tuple[Update, ...]:
    """The updates of sets that keep their size, with the Deployment's desired replicas in their annotation."""
    outdated = (
        replica_set
        for replica_set in sets
        if replica_set.desired_annotation not in (None, deployment.replicas)
    )
    return tuple(
        _resize(deployment, replica_set, replica_set.replicas)
        for replica_set in outdated
        if sizes.get(replica_set.name) == replica_set.replicas
    )


def _resize(deployment: DeploymentView, replica_set: SetView, size: int) -> Update:
    body = meta.with_annotations(replica_set.object, size_annotations(deployment))
    body["spec"] = {**replica_set.object["spec"], "replicas": size}
    return Update(resource=REPLICA_SETS, body=body, event=_event_template(deployment, replica_set, size))


def _event_template(deployment: DeploymentView, replica_set: SetView, size: int) -> EventTemplate | None:
    if size == replica_set.replicas:
        return None
    way = "up" if size > replica_set.replicas else "down"
    text = f"Scaled {way} replica set {replica_set.name} from {replica_set.replicas} to {size}"
    return EventTemplate(about=deployment.object, done=(REASON_SCALING_REPLICA_SET, text))
