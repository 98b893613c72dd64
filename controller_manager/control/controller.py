"""What a controller is: a row that names what it watches, which keys a change concerns, and how it decides.

The runtime owns the loop: informers turn changes into keys, a queue hands each key to one worker at a time, the worker
calls `reconcile`, and the executor executes the plan. A key waits until the caches have seen what was last written
for it, so that no plan is made from stale objects.
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
from mockube.controller_manager.queue.workqueue import DEFAULT_RETRIES, Retries

ToKeys = Callable[[Caches, Change], Iterable[Key]]
"""The keys of the controller's primary objects that a change of another resource concerns."""


class Watch(Struct, frozen=True, kw_only=True):
    resource: Resource[Any]
    keys: ToKeys | None = None
    """None for a resource that is only read."""
    delay: timedelta = timedelta()
    """How long a change waits for others, so that one reconciliation and one write cover them all."""
    max_delay: timedelta = timedelta()
    """If set, each further change restarts the wait, until the first has waited for so long."""


class Observer(Collector):
    """Counts the outcomes of reconciliations, for the metrics of one controller."""

    @abstractmethod
    def observe(self, primary: Any, outcome: Outcome, seconds: float, now: datetime) -> None:
        """`primary` is the object as the cache had it, or None."""


class Controller(Struct, frozen=True, kw_only=True):
    name: str
    """As `--controllers` names it: `replicaset-controller`."""
    queue: str
    """The label of its queue in the metrics: `replicaset`."""
    service_account: str
    """In kube-system; its name is the user in audit logs: `replicaset-controller`."""
    watches: tuple[Watch, ...]
    reconcile: Callable[..., Plan]
    """Pure: takes the caches, a key and the time, returns a plan; that of a deleted object is empty. Raises nothing.

    With `remembers` it also takes the memory of the key, or None.
    """
    workers: int
    remembers: bool = False
    """Its plans contain `Remember`."""
    events_can_wait: bool = False
    """Its Events can wait while much happens."""
    event_component: str = ""
    """The component of its Events, where that is not its service account."""
    metrics_name: str = ""
    """The label of its reconciliations in controller-runtime's metrics, where its users know it by those."""
    observer: Callable[[], Observer] | None = None
    indexes: Mapping[Resource[Any], Mapping[str, Indexer]] = field(default_factory=dict)
    """Indexes that it needs in the caches, by name; the same name means the same function everywhere."""
    retries: Retries = DEFAULT_RETRIES
    """How long a key waits after a failure."""
    needs: tuple[Resource[Any], ...] = ()
    """Resources that not every server has: the controller starts once the server has all of them."""

    @property
    def event_source(self) -> str:
        return self.event_component or self.service_account
