"""The metrics of a server, and the simulated metrics of nodes and pods, which are resources."""

from collections.abc import Iterable

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from mockube.apimachinery.usage.expressions import Expressions
from mockube.apiserver.audit.audit import Audit, AuditCounts
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.metrics.audit import AuditMetrics
from mockube.apiserver.metrics.storage import DecodeMetrics, ObjectMetrics
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.resource_metrics import ResourceMetrics
from mockube.apiserver.request.metrics_pages import MetricsPages

from .caches import ResourceCaches


def make_metrics(
    registry: Registry, caches: ResourceCaches, audit: Audit | None, others: Iterable[Collector]
) -> CollectorRegistry:
    """Return the registry of all collectors; `others` are those of other parts."""
    collectors = CollectorRegistry()
    for collector in (
        *others,
        ObjectMetrics(caches.counts),
        DecodeMetrics(registry.watch_cache.unreadable.failures, caches.resources),
        AuditMetrics(AuditCounts() if audit is None else audit.counts),
    ):
        collectors.register(collector)
    ProcessCollector(registry=collectors)
    return collectors


class SimulatedMetrics(Struct, frozen=True, kw_only=True):
    pages: MetricsPages
    """The groups of custom and external metrics."""
    verbs: OwnVerbs
    """Of the resources of metrics.k8s.io."""


def make_simulated_metrics(
    config: Config, registry: Registry, catalog: Catalog, aggregator: Aggregator
) -> SimulatedMetrics | None:
    if not config.features.simulate_metrics:
        return None
    expressions = Expressions(registry.clock.now, registry.random)
    pages = MetricsPages(registry, expressions, aggregator.served_elsewhere)
    catalog.on_resource.append(pages.handle_definition)
    return SimulatedMetrics(pages=pages, verbs=ResourceMetrics(expressions).verbs())
