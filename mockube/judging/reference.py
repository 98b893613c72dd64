"""The state that an operator reaches when nothing disturbs it, with which all other trials are compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.operators.end_state import (
    NOTHING_VARIES,
    Difference,
    EndState,
    Identity,
    Role,
    Varying,
    differences,
    end_state,
    identity_of,
    is_noise,
    learn_varying,
)

from .trial_cluster import TrialCluster

MAX_LINES: Final = 8
_BUILT_IN_ANNOTATIONS: Final = (
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
)
_OWN_UID: Final = "(uid of the custom resource)"


class Reference(Struct, frozen=True, kw_only=True):
    """The written objects of two undisturbed runs, and what was not the same in both."""

    state: EndState
    varying: Varying
    objects: Sequence[ReadOnlyTree]
    seconds: float
    """How long the operator took, without the quiet time at the end."""
    writes: Sequence[str] = ()
    """The resources of its writes for the custom resource in one run, in their order."""

    def differences(self, trial: TrialCluster) -> Sequence[Difference]:
        """Return how the state of a trial differs."""
        return differences(self.state, end_state(written_objects(trial), self.varying), self.varying)

    def role_of(self, tree: ReadOnlyTree) -> Role:
        """Return the role of an object of any run: its name has a star in place of what is random."""
        identity = identity_of(tree)
        return end_state([tree], self.varying).labels.get(identity, identity)


def make_reference(
    runs: Sequence[Sequence[ReadOnlyTree]], seconds: float, writes: Sequence[str] = ()
) -> Reference:
    first, *others = runs
    varying = learn_varying(first, others[0]) if others else NOTHING_VARIES
    state = end_state(first, varying)
    return Reference(state=state, varying=varying, objects=first, seconds=seconds, writes=writes)


def written_objects(trial: TrialCluster) -> Sequence[Tree]:
    """Return the objects that the operator has written and that exist, and the custom resource, as far as they are its work."""
    group, uid = trial.setup.sample.group, _resource_uid(trial)
    return [own_part(tree, group, uid) for tree in current_objects(trial)]


def _resource_uid(trial: TrialCluster) -> str:
    try:
        return meta.uid(trial.resource())
    except NotFound:
        return ""


def current_objects(trial: TrialCluster, *, created_only: bool = False) -> Sequence[Tree]:
    """Return the objects that the operator has written, or has created, as they are now."""
    found = [_read(trial, each) for each in written_names(trial, created_only=created_only)]
    return [tree for tree in found if tree is not None]


def written_names(trial: TrialCluster, *, created_only: bool = False) -> Sequence[ReadOnlyTree]:
    """Return what the operator has written: the apiVersion, kind, namespace and name of each object.

    With `created_only`, it is what it has created for custom resources.
    """
    names: dict[Identity, ReadOnlyTree] = {}
    for change in trial.changes():
        about = change["object"]
        if created_only and change["type"] != "ADDED":
            continue
        identity = {"apiVersion": about["apiVersion"], "kind": about["kind"], "metadata": _metadata(about)}
        key = identity_of(identity)
        if not is_noise(key) and not (created_only and key in trial.own):
            names[key] = identity
    return [*names.values()]


def _metadata(about: ReadOnlyTree) -> Mapping[str, Any]:
    return {name: about[name] for name in ("namespace", "name") if about.get(name)}


def _read(trial: TrialCluster, identity: ReadOnlyTree) -> Tree | None:
    try:
        return dict(trial.cluster.get(identity))
    except NotFound:
        return None
    except ApiError:
        return None  # its kind is not served any more


def own_part(tree: ReadOnlyTree, group: str, uid: str = "") -> Tree:
    """Return an object without what others than the operator write: the status, unless it is a custom resource of the operator.

    The uid of the custom resource, which is another one each time, is left out of references to it.
    """
    is_own = meta.api_version(tree).rpartition("/")[0] == group
    metadata: Mapping[str, Any] = tree.get("metadata") or {}
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name not in _BUILT_IN_ANNOTATIONS
    }
    own: Tree = {name: value for name, value in tree.items() if name != "status" or is_own}
    own["metadata"] = {**metadata, "annotations": annotations}
    if owners := metadata.get("ownerReferences"):
        own["metadata"]["ownerReferences"] = [
            {**each, "uid": _OWN_UID} if uid and each.get("uid") == uid else each for each in owners
        ]
    return own


def note_own_objects(trial: TrialCluster) -> None:
    """Note what the operator has created before there is a custom resource."""
    trial.own = frozenset(map(identity_of, written_names(trial, created_only=True)))


def lines_of(found: Sequence[Difference]) -> Iterator[str]:
    """Yield the differences as lines for a report."""
    for each in found[:MAX_LINES]:
        yield str(each)
    if len(found) > MAX_LINES:
        yield f"and {len(found) - MAX_LINES} more"
