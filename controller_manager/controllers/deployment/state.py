"""The state of a Deployment: the fields of the Deployment and of its ReplicaSets that its controller reads."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.intstr import IntOrString, scaled_value
from mockube.apimachinery.names import SUBDOMAIN_MAX_LENGTH
from mockube.apimachinery.timestamps import span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_REVISION,
)
from mockube.client.cache.store import Caches
from mockube.client.kinds import PODS, REPLICA_SETS
from mockube.controller_manager.workloads.ownership import BY_OWNER
from mockube.controller_manager.workloads.templates import equal_ignoring_hash, template_hash

UNLIMITED: Final = 2**31 - 1
"""The value of a deadline or of a history limit that means "no limit"."""

Sizes = Mapping[str, int]
"""Desired replicas of ReplicaSets, by their names."""


class Fenceposts(NamedTuple):
    """maxSurge and maxUnavailable as numbers of pods; upstream's `ResolveFenceposts`."""

    max_surge: int
    max_unavailable: int


def resolve_fenceposts(
    max_surge: IntOrString | None, max_unavailable: IntOrString | None, replicas: int
) -> Fenceposts:
    """Resolve numbers or percentages of the replicas to numbers of pods.

    maxSurge is rounded up and maxUnavailable down, so that a small workload keeps its pods. If both are 0, the result
    allows one unavailable pod, because the rollout could not begin otherwise.
    """
    surge = scaled_value(max_surge or 0, replicas, round_up=True)
    unavailable = scaled_value(max_unavailable or 0, replicas, round_up=False)
    return Fenceposts(surge, unavailable if surge or unavailable else 1)


class DeploymentView(Struct, frozen=True, dict=True):
    object: ReadOnlyTree

    @property
    def name(self) -> str:
        return meta.name(self.object)

    @property
    def spec(self) -> ReadOnlyTree:
        spec: ReadOnlyTree = self.object["spec"]
        return spec

    @property
    def status(self) -> ReadOnlyTree:
        return self.object.get("status") or {}

    @property
    def template(self) -> ReadOnlyTree:
        template: ReadOnlyTree = self.spec["template"]
        return template

    @property
    def replicas(self) -> int:
        return _number(self.spec.get("replicas"), 1)

    @property
    def is_paused(self) -> bool:
        return bool(self.spec.get("paused"))

    @property
    def min_ready_seconds(self) -> int:
        return self.spec.get("minReadySeconds") or 0

    @property
    def is_rolling_update(self) -> bool:
        """Whether old pods are deleted while new ones are created; otherwise all old pods are deleted first."""
        return (self.spec.get("strategy") or {}).get("type") != "Recreate"

    @cached_property
    def _fenceposts(self) -> Fenceposts:
        if not self.is_rolling_update:
            return Fenceposts(0, 0)
        rolling = (self.spec.get("strategy") or {}).get("rollingUpdate") or {}
        return resolve_fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), self.replicas)

    @property
    def max_replicas(self) -> int:
        """The maximum number of pods during a rollout: the replicas and maxSurge."""
        return self.replicas + self._fenceposts.max_surge

    @property
    def min_available(self) -> int:
        """The minimum number of available pods during a rollout: the replicas without maxUnavailable."""
        return max(self.replicas - self._fenceposts.max_unavailable, 0)

    @property
    def progress_deadline(self) -> timedelta | None:
        seconds = self.spec.get("progressDeadlineSeconds")
        return None if seconds is None or seconds == UNLIMITED else span_of(seconds)

    @property
    def history_limit(self) -> int | None:
        limit = self.spec.get("revisionHistoryLimit")
        return None if limit == UNLIMITED else limit


class ReplicaSetView(Struct, frozen=True, kw_only=True, eq=False):
    object: ReadOnlyTree
    name: str
    uid: str
    deleting: bool
    age: tuple[str, str]
    """The sort key for the order of creation, the oldest first."""
    revision: int
    replicas: int
    """The desired number; the following counts are those in its status."""
    status_replicas: int
    """`replicas` in its status: the pods that exist."""
    ready: int
    available: int
    terminating: int | None
    """None if its controller wrote a status without this field."""
    is_observed: bool
    """Whether the status belongs to the current spec."""
    desired_annotation: int | None
    """The desired replicas of the Deployment when this set was last resized."""
    max_annotation: int | None

    @classmethod
    def of(cls, tree: ReadOnlyTree) -> "ReplicaSetView":
        spec, status = tree["spec"], tree.get("status") or {}
        observed = status.get("observedGeneration") or 0
        return cls(
            object=tree,
            name=meta.name(tree),
            uid=meta.uid(tree),
            deleting=meta.is_deleting(tree),
            age=(meta.metadata(tree).get("creationTimestamp") or "", meta.name(tree)),
            revision=revision_of(tree),
            replicas=_number(spec.get("replicas"), 1),
            status_replicas=status.get("replicas") or 0,
            ready=status.get("readyReplicas") or 0,
            available=status.get("availableReplicas") or 0,
            terminating=status.get("terminatingReplicas", None if observed else 0),
            is_observed=meta.generation(tree) <= observed,
            desired_annotation=_number_in_annotation(tree, ANNOTATION_DESIRED_REPLICAS),
            max_annotation=_number_in_annotation(tree, ANNOTATION_MAX_REPLICAS),
        )

    @property
    def possible_pods(self) -> int:
        """The number of pods that the set has or will have: after it was scaled down, its pods exist for a while."""
        return max(self.replicas, self.status_replicas)

    @property
    def available_after_scaling(self) -> int:
        """The available pods that remain when the set has been scaled down to its replicas."""
        return min(self.available, self.replicas)


def revision_of(tree: ReadOnlyTree) -> int:
    """Return the revision in the annotation; 0 if it is not a number."""
    text = meta.annotations(tree).get(ANNOTATION_REVISION, "")
    return int_or_none(text) or 0


def _number_in_annotation(tree: ReadOnlyTree, annotation: str) -> int | None:
    text = meta.annotations(tree).get(annotation, "")
    return int_or_none(text, bits=32) if text.isdigit() else None


def _number(value: Any, absent: int) -> int:
    return absent if value is None else int(value)


# --- the state of one reconciliation


class DeploymentState(Struct, frozen=True, kw_only=True):
    deployment: DeploymentView
    new: ReplicaSetView | None
    """The ReplicaSet with the Deployment's current template."""
    old_sets: Sequence[ReplicaSetView]
    """The ReplicaSets with other templates, the oldest first."""
    new_hash: str = ""
    """The hash in the name of the new ReplicaSet, if it does not exist yet."""
    is_name_taken: bool = False
    """Whether a ReplicaSet of another owner or template has that name."""
    has_running_old_pods: bool = False
    """Whether pods of old sets have not ended, including pods being deleted, which are not in the sets' statuses."""

    @property
    def sets(self) -> Sequence[ReplicaSetView]:
        return self.old_sets if self.new is None else (*self.old_sets, self.new)


def state_of(caches: Caches, deployment: ReadOnlyTree, owned: Iterable[ReadOnlyTree]) -> DeploymentState:
    """Return the state. If several sets have the Deployment's template, the oldest is the new one."""
    view = DeploymentView(deployment)
    sets = sorted(map(ReplicaSetView.of, owned), key=lambda replica_set: replica_set.age)
    new = next(
        (
            replica_set
            for replica_set in sets
            if equal_ignoring_hash(replica_set.object["spec"]["template"], view.template)
        ),
        None,
    )
    old_sets = tuple(replica_set for replica_set in sets if replica_set is not new)
    new_hash = (
        "" if new else template_hash(view.template, view.status.get("collisionCount"), caches.gates.minor)
    )
    return DeploymentState(
        deployment=view,
        new=new,
        old_sets=old_sets,
        new_hash=new_hash,
        is_name_taken=bool(new_hash) and _is_name_taken(caches, view, new_hash),
        has_running_old_pods=_has_running_old_pods(caches, old_sets),
    )


def new_set_name(deployment: DeploymentView, template_hash: str) -> str:
    max_prefix = SUBDOMAIN_MAX_LENGTH - len(template_hash) - 1
    return f"{deployment.name[:max_prefix]}-{template_hash}"


def _is_name_taken(caches: Caches, deployment: DeploymentView, template_hash: str) -> bool:
    name = new_set_name(deployment, template_hash)
    return caches.of(REPLICA_SETS).get(meta.namespace(deployment.object), name) is not None


def _has_running_old_pods(caches: Caches, old_sets: Iterable[ReplicaSetView]) -> bool:
    pods = caches.of(PODS)
    return any(
        old.status_replicas > 0 or any(not pod.is_terminal for pod in pods.by_index(BY_OWNER, old.uid))
        for old in old_sets
    )
