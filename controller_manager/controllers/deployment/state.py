"""A Deployment and its ReplicaSets as its controller sees them: the fields that it decides by, and what absence means."""

from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.timestamps import span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_REVISION,
)
from mockube.controller_manager.workloads.rolling import Fenceposts, fenceposts

UNLIMITED: Final = 2**31 - 1
"""Of a deadline or a history limit: there is none."""


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
    def rolls(self) -> bool:
        """Old pods are deleted while new ones are created; otherwise all old pods are deleted first."""
        return (self.spec.get("strategy") or {}).get("type") != "Recreate"

    @cached_property
    def _fenceposts(self) -> Fenceposts:
        if not self.rolls:
            return Fenceposts(0, 0)
        rolling = (self.spec.get("strategy") or {}).get("rollingUpdate") or {}
        return fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), self.replicas)

    @property
    def max_replicas(self) -> int:
        return self.replicas + self._fenceposts.surge

    @property
    def min_available(self) -> int:
        return max(self.replicas - self._fenceposts.unavailable, 0)

    @property
    def progress_deadline(self) -> timedelta | None:
        seconds = self.spec.get("progressDeadlineSeconds")
        return None if seconds is None or seconds == UNLIMITED else span_of(seconds)

    @property
    def history_limit(self) -> int | None:
        limit = self.spec.get("revisionHistoryLimit")
        return None if limit == UNLIMITED else limit


class SetView(Struct, frozen=True, kw_only=True, eq=False):
    object: ReadOnlyTree
    name: str
    uid: str
    deleting: bool
    age: tuple[str, str]
    """Sorts by creation; the oldest is the least."""
    revision: int
    replicas: int
    """The desired number; the counts below are what its controller reported."""
    reported: int
    ready: int
    available: int
    terminating: int | None
    """None if its controller has observed it and does not count them."""
    is_observed: bool
    """Its controller has seen its spec."""
    desired_annotation: int | None
    """The desired replicas of its Deployment when it last sized this set."""
    max_annotation: int | None

    @classmethod
    def of(cls, tree: ReadOnlyTree) -> "SetView":
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
            reported=status.get("replicas") or 0,
            ready=status.get("readyReplicas") or 0,
            available=status.get("availableReplicas") or 0,
            terminating=status.get("terminatingReplicas", None if observed else 0),
            is_observed=meta.generation(tree) <= observed,
            desired_annotation=_read_annotation(tree, ANNOTATION_DESIRED_REPLICAS),
            max_annotation=_read_annotation(tree, ANNOTATION_MAX_REPLICAS),
        )

    @property
    def possible_pods(self) -> int:
        """Pods that it has or will have: a set that was scaled down has them until its controller has acted."""
        return max(self.replicas, self.reported)

    @property
    def available_after_scaling(self) -> int:
        """The available pods that stay when the set is scaled down to its size."""
        return min(self.available, self.replicas)


def revision_of(tree: ReadOnlyTree) -> int:
    """The revision in its annotation; 0 if that is no number."""
    text = meta.annotations(tree).get(ANNOTATION_REVISION, "")
    return int_or_none(text) or 0


def _read_annotation(tree: ReadOnlyTree, annotation: str) -> int | None:
    text = meta.annotations(tree).get(annotation, "")
    return int_or_none(text, bits=32) if text.isdigit() else None


def _number(value: Any, absent: int) -> int:
    return absent if value is None else int(value)
