"""The metrics of a server, and the simulated metrics of nodes and pods, which are resources."""

from msgspec import Struct

from mockube.apimachinery.usage.expressions import Expressions
from mockube.apiserver.audit.audit import Audit
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.metrics.storage import (
    count_audit,
    count_objects,
    count_unreadable,
    report_revision,
)
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.resource_metrics import ResourceMetrics
from mockube.apiserver.request.metrics_pages import MetricsPages, NoMetricsPages
from mockube.component_base.process_metrics import count_build, count_process
from mockube.component_base.version import version

from .context import ApiServerContext
from .outgoing import make_kubelet_usage
from .registry import Storage


def observe_parts(context: ApiServerContext, storage: Storage, audit: Audit | None) -> None:
    """Collect what other parts count: objects, values that cannot be read, the audit log, the process and its version."""
    registry, caches, metrics = storage.registry, storage.caches, context.metrics
    count_objects(caches.counts, metrics)
    report_revision(lambda: registry.watch_cache.revision, caches.resources, metrics)
    count_unreadable(registry.watch_cache.unreadable.failures, caches.resources, metrics)
    count_audit(None if audit is None else audit.counts, metrics)
    count_process(metrics)
    count_build(metrics, context.config.features.git_version or f"v{version(context.minor)}")


class SimulatedMetrics(Struct, frozen=True, kw_only=True):
    pages: MetricsPages | NoMetricsPages
    """The groups of custom and external metrics."""
    verbs: OwnVerbs
    """Of the resources of metrics.k8s.io."""


def no_metrics() -> SimulatedMetrics:
    return SimulatedMetrics(pages=NoMetricsPages(), verbs={})


def make_simulated_metrics(
    context: ApiServerContext, catalog: Catalog, registry: Registry, aggregator: Aggregator
) -> SimulatedMetrics:
    if not context.config.features.simulate_metrics:
        return no_metrics()
    expressions = Expressions(registry.clock.now, registry.random)
    pages = MetricsPages(registry, expressions, aggregator.served_elsewhere)
    catalog.on_resource.append(pages.handle_definition)
    usage = make_kubelet_usage(context, registry)
    return SimulatedMetrics(pages=pages, verbs=ResourceMetrics(expressions, usage.measure).verbs())
