"""The record of a controller: its watches, the mapping of changes to keys, and its `reconcile` function.

`runner` runs it: event handlers map changes to keys, a queue gives each key to one worker at a time, the worker calls
`reconcile`, and the executor executes the plan. A key waits until the caches contain its last writes, so that no plan is
made from stale objects.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from mockube.client.cache.store import Caches, Change, Classifier, Indexer
from mockube.client.queue.workqueue import DEFAULT_RETRY_BACKOFF, RetryBackoff
from mockube.client.resources import Key, Resource
from mockube.component_base.metrics import MetricsRegistry

from .actions import Plan, PlanResult

ToKeys = Callable[[Caches, Change], Iterable[Key]]
"""A function that maps a change of a watched object to the keys of the primary objects to reconcile."""


def key_of_object(_: Caches, change: Change) -> Iterable[Key]:
    """Map a change of an object to its own key, also if it was deleted."""
    return (Key.of(change.last_known),)


def key_of_existing_object(_: Caches, change: Change) -> Iterable[Key]:
    """Map a change of an object to its own key, unless it was deleted."""
    return () if change.new is None else (Key.of(change.new),)


class Watch(Struct, frozen=True, kw_only=True):
    """A resource that a controller watches, or only reads."""

    resource: Resource[Any]
    keys: ToKeys | None = None
    """None for a resource that is only read."""
    delay: timedelta = timedelta()
    """The delay of keys, so that one reconciliation handles several changes."""
    pause: timedelta = timedelta()
    """The delay for each object that the last reconciliation of the key looked at, if that is longer than `delay`."""
    max_delay: timedelta = timedelta()
    """If set, each further change restarts the delay, up to this time after the first change."""


class OutcomeMetrics(ABC):
    """The metrics of one controller that depend on the outcomes of its reconciliations."""

    @abstractmethod
    def observe(self, primary: Any, outcome: PlanResult, seconds: float, now: datetime) -> None:
        """Record an outcome. `primary` is the object as it was in the cache, or None."""

    def update(self) -> None:  # noqa: B027 - most have nothing to read
        """Set the numbers that are not counted, before they are collected."""


class Controller(Struct, frozen=True, kw_only=True):
    """A controller that reconciles keys."""

    name: str
    """The name in `--controllers`, such as `replicaset-controller`."""
    queue: str
    """The label of its queue in the metrics, such as `replicaset`."""
    service_account: str
    """Its service account in kube-system, which audit logs contain as the user, such as `replicaset-controller`."""
    watches: tuple[Watch, ...]
    reconcile: Callable[..., Plan]
    """A pure function that returns the plan for a key: takes the caches, the key and the time. It raises nothing.

    The plan of a deleted object is empty. If `has_memory` is set, the function also takes the memory of the key, or None.
    """
    workers: int
    has_memory: bool = False
    """Whether its plans contain `Remember`."""
    events_can_wait: bool = False
    """Whether its Events may be written later while many are recorded."""
    event_component: str = ""
    """The component of its Events, if that is not its service account."""
    metrics_name: str = ""
    """The label of its reconciliations in controller-runtime's metrics; empty if upstream has no such metrics for it."""
    outcome_metrics: Callable[[MetricsRegistry], OutcomeMetrics] | None = None
    indexes: Mapping[Resource[Any], Mapping[str, Indexer]] = field(default_factory=dict)
    """The indexes of the caches that it needs, by name; a name stands for one function everywhere."""
    tallies: Mapping[Resource[Any], Mapping[str, Classifier]] = field(default_factory=dict)
    """The tallies of the caches that it needs, by name, as the indexes."""
    retries: RetryBackoff = DEFAULT_RETRY_BACKOFF
    """The backoff of failed keys."""
    needs: tuple[Resource[Any], ...] = ()
    """Resources that not every server serves: the controller starts when the server serves all of them."""

    @property
    def event_source(self) -> str:
        return self.event_component or self.service_account
