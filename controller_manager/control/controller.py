"""What a controller is: a row that names what it watches, which keys a change concerns, and how it decides.

The runtime owns the loop: informers turn changes into keys, a queue hands each key to one worker at a time, the worker
asks `reconcile`, and the executor carries out the plan. A key waits until the caches have seen what was last written
for it, so that no plan is made from what is known to be old.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field
from prometheus_client.registry import Collector

from mockube.controller_manager.cache.store import Caches, Change, Indexer
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.control.actions import Outcome, Plan
from mockube.controller_manager.queue.rate_limiting import DEFAULT_RETRIES, Retries

ToKeys = Callable[[Caches, Change], Iterable[Key]]
"""The keys of the controller's primary objects that a change of another resource concerns."""


class Watch(Struct, frozen=True, kw_only=True):
    resource: Resource[Any]
    keys: ToKeys | None = None
    """None for a resource that is only read."""
    patience: timedelta = timedelta()
    """How long a change waits for others, so that one look and one write do for all of them."""
    max_delay: timedelta = timedelta()
    """With it each further change waits for others, too, until the first has waited for so long."""


class Observer(Collector):
    """Counts what comes of reconciliations, for the metrics of one controller."""

    @abstractmethod
    def observe(self, primary: Any, outcome: Outcome, seconds: float, now: datetime) -> None:
        """`primary` is the object as the cache had it, or None."""


class Controller(Struct, frozen=True, kw_only=True):
    name: str
    """As `--controllers` names it: `replicaset-controller`."""
    queue: str
    """The label of its queue in the metrics: `replicaset`."""
    service_account: str
    """In kube-system, whose name the audit shows: `replicaset-controller`."""
    watches: tuple[Watch, ...]
    reconcile: Callable[..., Plan]
    """Pure: reads caches and the time, returns what to do. Raises nothing; an object that is gone has an empty plan.

    Of the caches, a key and the time (a datetime); of one that `remembers`, also of what was remembered, or None.
    """
    workers: int
    remembers: bool = False
    """Its plans hold `Remember`."""
    tells_of_each_pod: bool = False
    """Its Events can wait while much happens."""
    speaks_as: str = ""
    """Who its Events say they are from, where that is not its service account."""
    observed_as: str = ""
    """The label of its reconciliations in controller-runtime's metrics, where its users know it by those."""
    observer: Callable[[], Observer] | None = None
    indexes: Mapping[Resource[Any], Mapping[str, Indexer]] = field(default_factory=dict)
    """Indexes that it needs in the caches, by name; the same name means the same function everywhere."""
    retries: Retries = DEFAULT_RETRIES
    """How long a key waits after a failure."""
    needs: tuple[Resource[Any], ...] = ()
    """What not every server has: the controller begins once the server has all of them."""

    @property
    def event_source(self) -> str:
        return self.speaks_as or self.service_account
