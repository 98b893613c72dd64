"""The pages besides resources: discovery, OpenAPI, health, metrics, and those for debugging."""

from collections.abc import Callable, Collection
from functools import partial

from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.event_loop import Worker
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.metrics.storage import measure_store
from mockube.apiserver.openapi.documents import DocumentCache, Documents
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.health import HealthChecks
from mockube.apiserver.request.metrics_endpoint import metrics_page
from mockube.apiserver.request.openapi import openapi_pages
from mockube.apiserver.request.page import Pages
from mockube.apiserver.request.pages import RenewedPages, api_pages, with_index
from mockube.apiserver.request.zpages import debug_pages, zpages
from mockube.component_base.metrics import MetricsRegistry

from .catalog import documented_resources
from .environment import ServerEnvironment
from .metrics import SimulatedMetrics


def make_fixed_pages(
    config: Config,
    registry: Registry,
    health: HealthChecks,
    metrics: MetricsRegistry,
    paths: Callable[[], Collection[str]],
) -> Pages:
    """Return the pages that do not depend on the served kinds; `paths` returns the paths of all pages."""
    clock = registry.clock
    return {
        **health.pages,
        "/metrics": metrics_page(metrics, clock, partial(measure_store, registry.kv, metrics)),
        "/metrics/slis": metrics_page(health.metrics, clock),
        **debug_pages(has_flow_control=config.features.enable_priority_and_fairness),
        **zpages(clock, config.features.gates, config.flags, paths),
    }


def make_pages(  # noqa: PLR0913 - each argument is a part
    config: Config,
    *,
    environment: ServerEnvironment,
    registry: Registry,
    catalog: Catalog,
    aggregator: Aggregator,
    simulated: SimulatedMetrics | None,
    fixed: Pages,
) -> RenewedPages:
    """Return all pages. Those of discovery and OpenAPI are built again after the served kinds have changed."""
    metrics = None if simulated is None else simulated.pages
    cache, kinds = DocumentCache(), catalog.kinds
    # A worker of its own builds the documents, so that requests for objects do not wait for them.
    worker = Worker()

    def make() -> Pages:
        others = aggregator.other_groups()
        if metrics is not None:
            others = metrics.add_to(others)
        foreign = [*aggregator.foreign_documents()]
        documents = Documents(
            documented_resources(catalog),
            catalog.listed_versions,
            kinds.strategies,
            foreign,
            kinds.minor,
            cache,
        )
        discovery = api_pages(
            catalog.groups,
            address=environment.address,
            others=others,
            minor=kinds.minor,
            git_version=config.features.git_version,
        )
        documented = openapi_pages(documents, worker, registry.clock)
        simulated_versions = metrics.versions() if metrics else {}
        return with_index({**discovery, **documented, **aggregator.pages(), **fixed, **simulated_versions})

    pages = RenewedPages(make, metrics.refresh if metrics else None)
    changes = [catalog.on_change, aggregator.remotes.on_change]
    for on_change in (*changes, *([metrics.on_change] if metrics else [])):
        on_change.append(pages.invalidate)
    return pages
