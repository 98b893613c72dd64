"""The names of simulated custom and external metrics, which are the resources of their groups in discovery."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.metrics.resource_metrics import CUSTOM, EXTERNAL
from mockube.apiserver.storage.recent_changes import Change

from .custom_metrics import CUSTOM_METRICS, EXTERNAL_METRICS, CustomMetrics
from .registry import Backend
from .resource_metrics import CLUSTER_RESOURCE_USAGES, RESOURCE_USAGES

_SOURCES = frozenset({CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_USAGES, CLUSTER_RESOURCE_USAGES})


class MetricNames:
    """The entries of the groups' resource lists. They are computed again at the first use after a change of an object."""

    def __init__(self, backend: Backend, metrics: CustomMetrics) -> None:
        self._backend = backend
        self._metrics = metrics
        self._prefixes: set[bytes] = set()
        """The prefixes of the watched caches."""
        self._is_outdated = True
        self._entries: Mapping[str, Sequence[Tree]] = {}
        self.on_change: list[Callable[[], None]] = []
        backend.watch_cache.on_reset.append(self.invalidate)

    @property
    def entries(self) -> Mapping[str, Sequence[Tree]]:
        """By group, its entries; a group without metrics is not served, as in a cluster without an adapter."""
        self.refresh()
        return self._entries

    def invalidate(self) -> None:
        self._is_outdated = True

    def handle_definition(self, resource: GroupResource) -> None:
        """Watch the objects of a new definition that give metrics; any new kind may be the subject of one."""
        self.invalidate()
        row = self._backend.rows.get(resource)
        if row is None or resource not in _SOURCES:
            return
        cache = self._backend.watch_cache.resource_cache(self._backend.layout.prefix(row))
        if cache.prefix not in self._prefixes:
            self._prefixes.add(cache.prefix)
            cache.watchers.add(_Watcher(cache.prefix, self.invalidate))

    def refresh(self) -> None:
        """Notify of a change of the names, if there was one."""
        if not self._is_outdated:
            return
        self._is_outdated, before = False, self._entries
        custom = [
            {"name": name, "namespaced": namespaced, "kind": "MetricValueList"}
            for name, namespaced in self._metrics.metric_names()
        ]
        external = [
            {"name": name, "namespaced": True, "kind": "ExternalMetricValueList"}
            for name in self._metrics.external_names()
        ]
        entries = {CUSTOM.name: custom, EXTERNAL.name: external}
        self._entries = {group: names for group, names in entries.items() if names}
        if self._entries != before:
            for notify in self.on_change:
                notify()


class _Watcher(Struct):
    prefix: bytes
    invalidate: Callable[[], None]

    def handle_change(self, change: Change) -> None:  # noqa: ARG002 - which object has changed does not matter
        self.invalidate()

    def handle_missed_change(self) -> None:
        self.invalidate()
