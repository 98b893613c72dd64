"""Read from the caches what a Deployment is decided on: its ReplicaSets, and whether old pods still run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apimachinery import labels, meta
from apimachinery.labels import Selector
from controller_manager.controllers.deployment import revision
from controller_manager.controllers.deployment.views import DeploymentView, SetView
from controller_manager.indexes import BY_OWNER
from controller_manager.kinds import PODS, REPLICA_SETS
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.templates import equal_ignoring_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    deployment: DeploymentView
    new: SetView | None
    """The set of the Deployment's own template."""
    olds: Sequence[SetView]
    """The sets of other templates, the oldest first."""
    hash_of_new: str = ""
    """What the new set would be named by, if there is none."""
    is_name_taken: bool = False
    """By a set of something else: hashes collide, and names of strangers do."""
    old_pods_run: bool = False
    """Though perhaps on their way out, when no set counts them any more."""

    @property
    def sets(self) -> Sequence[SetView]:
        return self.olds if self.new is None else (*self.olds, self.new)


def selector_of(deployment: Tree) -> Selector:
    return labels.from_label_selector(deployment["spec"].get("selector"))


def scene_of(caches: Caches, deployment: Tree, owned: Iterable[Tree]) -> Scene:
    """Of several sets with the Deployment's template the oldest counts as the new one."""
    view = DeploymentView(deployment)
    sets = sorted(map(SetView.of, owned), key=lambda it: it.age)
    new = next((it for it in sets if equal_ignoring_hash(it.object["spec"]["template"], view.template)), None)
    olds = tuple(it for it in sets if it is not new)
    hashed = "" if new else revision.hash_of_new(view)
    return Scene(
        deployment=view,
        new=new,
        olds=olds,
        hash_of_new=hashed,
        is_name_taken=bool(hashed) and _is_taken(caches, view, hashed),
        old_pods_run=_old_pods_run(caches, olds),
    )


def _is_taken(caches: Caches, deployment: DeploymentView, hashed: str) -> bool:
    name = revision.name_of_new(deployment, hashed)
    return caches.of(REPLICA_SETS).get(meta.namespace(deployment.object), name) is not None


def _old_pods_run(caches: Caches, olds: Iterable[SetView]) -> bool:
    pods = caches.of(PODS)
    return any(
        old.reported > 0 or any(not pod.is_terminal for pod in pods.by_index(BY_OWNER, old.uid))
        for old in olds
    )
