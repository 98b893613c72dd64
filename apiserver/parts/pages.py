"""The pages besides resources: discovery, OpenAPI, health, metrics, snapshots, the clock, and those for debugging."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec import Struct

from mockube.apiserver.authn.chain import Authenticators
from mockube.apiserver.bootstrap.rbac_hook import BootstrapRoles
from mockube.apiserver.control.server_control import NoControl
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.event_loop import Worker
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.metrics.storage import measure_store
from mockube.apiserver.openapi.documents import DocumentCache, Documents
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request import lease_renewals, snapshot_endpoint
from mockube.apiserver.request.clock_endpoint import ClockStreams
from mockube.apiserver.request.metrics_endpoint import metrics_page
from mockube.apiserver.request.openapi import openapi_pages, openid_pages
from mockube.apiserver.request.page import Pages
from mockube.apiserver.request.pages import RenewedPages, api_pages, with_index
from mockube.apiserver.request.zpages import debug_pages, zpages

from .catalog import documented_resources
from .context import ApiServerContext
from .health import make_health
from .metrics import SimulatedMetrics


class FixedPages(Struct, frozen=True, kw_only=True):
    """The pages that do not depend on the served kinds."""

    context: ApiServerContext
    pages: Pages
    clock_streams: ClockStreams
    """The streams of one of them."""
    started: datetime

    def add_to(self, pages: Pages) -> Pages:
        """Return all pages, with those that list them."""
        features, clock = self.context.config.features, self.context.clock
        all_pages = {**pages, **self.pages}
        all_pages |= zpages(clock, features.gates, self.context.config.flags, all_pages.keys(), self.started)
        return with_index(all_pages)


def make_fixed_pages(
    context: ApiServerContext,
    registry: Registry,
    roles: BootstrapRoles,
    authentication: Authenticators,
    control: NoControl,
) -> FixedPages:
    config, clock, metrics = context.config, context.clock, context.metrics
    health, streams = make_health(context, registry, roles), ClockStreams(clock)
    pages = {
        **health.pages,
        "/metrics": metrics_page(metrics, clock, partial(measure_store, registry.kv, metrics)),
        "/metrics/slis": metrics_page(health.metrics, clock),
        **debug_pages(has_flow_control=config.features.enable_priority_and_fairness),
        **openid_pages(authentication.accounts, address=context.environment.address),
        **streams.pages(),
        snapshot_endpoint.PATH: snapshot_endpoint.page(
            registry, context.kv, context.on_restored, control.find_snapshot
        ),
    }
    if config.auditing.audit_log_path is None:  # an audit log contains each renewal as a request
        pages |= lease_renewals.pages(registry, context.hooks)
    return FixedPages(context=context, pages=pages, clock_streams=streams, started=clock.now())


def make_pages(
    context: ApiServerContext,
    catalog: Catalog,
    aggregator: Aggregator,
    simulated: SimulatedMetrics,
    finish: Callable[[Pages], Pages],
) -> RenewedPages:
    """Return all pages. Those of discovery and OpenAPI are built again after the served kinds have changed; `finish` adds others."""
    # A worker of its own builds the documents, so that requests for objects do not wait for them.
    cache, worker, metrics = DocumentCache(), Worker(), simulated.pages

    def make() -> Pages:
        documents = Documents(
            documented_resources(catalog),
            catalog.listed_versions,
            catalog.kinds.strategies,
            [*aggregator.foreign_documents()],
            context.minor,
            cache,
        )
        discovery = api_pages(
            catalog.groups,
            address=context.environment.address,
            others=metrics.add_to(aggregator.other_groups()),
            minor=context.minor,
            git_version=context.config.features.git_version,
        )
        documented = openapi_pages(documents, worker, context.clock)
        return finish({**discovery, **documented, **aggregator.pages(), **metrics.versions()})

    pages = RenewedPages(make, metrics.refresh)
    for on_change in (catalog.on_change, aggregator.remotes.on_change, metrics.on_change):
        on_change.append(pages.invalidate)
    return pages
