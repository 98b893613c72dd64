"""The metrics of a server, and the simulated metrics of nodes and pods, which are resources."""

from msgspec import Struct

from mockube.apimachinery.usage.expressions import Expressions
from mockube.apiserver.audit.audit import Audit
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.metrics import storage
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.resource_metrics import ResourceMetrics
from mockube.apiserver.request.metrics_pages import MetricsPages
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.process_metrics import count_build, count_process
from mockube.component_base.version import version

from .caches import ResourceCaches
from .environment import ServerEnvironment
from .outgoing import make_kubelet_usage


def observe_parts(
    config: Config, registry: Registry, caches: ResourceCaches, audit: Audit | None, metrics: MetricsRegistry
) -> None:
    """Collect what other parts count: objects, values that cannot be read, the audit log, the process and its version."""
    storage.count_objects(caches.counts, metrics)
    storage.report_revision(lambda: registry.watch_cache.revision, caches.resources, metrics)
    storage.count_unreadable(registry.watch_cache.unreadable.failures, caches.resources, metrics)
    storage.count_audit(None if audit is None else audit.counts, metrics)
    count_process(metrics)
    minor, git_version = config.features.kubernetes_version, config.features.git_version
    count_build(metrics, git_version or f"v{version(minor)}")


class SimulatedMetrics(Struct, frozen=True, kw_only=True):
    pages: MetricsPages
    """The groups of custom and external metrics."""
    verbs: OwnVerbs
    """Of the resources of metrics.k8s.io."""


def make_simulated_metrics(
    config: Config,
    environment: ServerEnvironment,
    registry: Registry,
    catalog: Catalog,
    aggregator: Aggregator,
) -> SimulatedMetrics | None:
    if not config.features.simulate_metrics:
        return None
    expressions = Expressions(registry.clock.now, registry.random)
    pages = MetricsPages(registry, expressions, aggregator.served_elsewhere)
    catalog.on_resource.append(pages.handle_definition)
    usage = make_kubelet_usage(environment, registry)
    return SimulatedMetrics(pages=pages, verbs=ResourceMetrics(expressions, usage.measure).verbs())
