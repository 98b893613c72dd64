"""The state that one reconciliation of a Deployment works on, read from the caches, and the old ReplicaSets beyond its history limit."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import PODS, REPLICA_SETS
from mockube.controller_manager.control.actions import Delete
from mockube.controller_manager.controllers.deployment import revision
from mockube.controller_manager.controllers.deployment.state import DeploymentView, SetView
from mockube.controller_manager.workloads.indexes import BY_OWNER
from mockube.controller_manager.workloads.ownership import object_ref
from mockube.controller_manager.workloads.templates import equal_ignoring_hash


class DeploymentState(Struct, frozen=True, kw_only=True):
    deployment: DeploymentView
    new: SetView | None
    """The set of the Deployment's own template."""
    old_sets: Sequence[SetView]
    """The sets of other templates, the oldest first."""
    hash_of_new: str = ""
    """What the new set would be named by, if there is none."""
    is_name_taken: bool = False
    """Whether a set of another owner or template has the name."""
    old_pods_run: bool = False
    """Whether pods of old sets run, even those being deleted, which no set counts any more."""

    @property
    def sets(self) -> Sequence[SetView]:
        return self.old_sets if self.new is None else (*self.old_sets, self.new)


def selector_of(deployment: ReadOnlyTree) -> Selector:
    return labels.from_label_selector(deployment["spec"].get("selector"))


def state_of(caches: Caches, deployment: ReadOnlyTree, owned: Iterable[ReadOnlyTree]) -> DeploymentState:
    """Of several sets with the Deployment's template the oldest counts as the new one."""
    view = DeploymentView(deployment)
    sets = sorted(map(SetView.of, owned), key=lambda replica_set: replica_set.age)
    new = next(
        (
            replica_set
            for replica_set in sets
            if equal_ignoring_hash(replica_set.object["spec"]["template"], view.template)
        ),
        None,
    )
    old_sets = tuple(replica_set for replica_set in sets if replica_set is not new)
    hashed = "" if new else revision.hash_of_new(view)
    return DeploymentState(
        deployment=view,
        new=new,
        old_sets=old_sets,
        hash_of_new=hashed,
        is_name_taken=bool(hashed) and _is_taken(caches, view, hashed),
        old_pods_run=_old_pods_run(caches, old_sets),
    )


def _is_taken(caches: Caches, deployment: DeploymentView, hashed: str) -> bool:
    name = revision.name_of_new(deployment, hashed)
    return caches.of(REPLICA_SETS).get(meta.namespace(deployment.object), name) is not None


def _old_pods_run(caches: Caches, old_sets: Iterable[SetView]) -> bool:
    pods = caches.of(PODS)
    return any(
        old.reported > 0 or any(not pod.is_terminal for pod in pods.by_index(BY_OWNER, old.uid))
        for old in old_sets
    )


def replica_sets_to_delete(state: DeploymentState) -> tuple[Delete, ...]:
    limit = state.deployment.history_limit
    if limit is None:
        return ()
    past = sorted(
        (old for old in state.old_sets if not old.deleting), key=lambda old: (old.revision, old.age)
    )
    surplus = past[: max(len(past) - limit, 0)]
    refs = tuple(object_ref(REPLICA_SETS, old.object) for old in surplus if _is_idle(old))
    return (Delete(resource=REPLICA_SETS, objects=refs),) if refs else ()


def _is_idle(old: SetView) -> bool:
    return old.replicas == 0 and old.reported == 0 and old.is_observed
