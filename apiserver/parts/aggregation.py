"""The other API servers, which APIServices name, and the resources that this one serves beside them."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from mockube.apiserver.bootstrap.apiservices import API_SERVICES
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry

from .context import ApiServerContext
from .outgoing import Outgoing

FindResource: TypeAlias = Callable[[str, str, str], Resource | None]
"""Returns the resource of a group, version and name."""


class Aggregation(Struct, frozen=True, kw_only=True):
    aggregator: Aggregator
    find: FindResource
    """Finds the resources that this server serves."""


def make_aggregation(
    context: ApiServerContext, catalog: Catalog, registry: Registry, outgoing: Outgoing
) -> Aggregation:
    credentials, config = context.environment.credentials, context.config
    aggregator = Aggregator(
        registry,
        catalog.rows[API_SERVICES],
        dict(config.admission.webhook_service),
        None if credentials is None else credentials.proxy,
        outgoing.dialer,
        simulates_metrics=config.features.simulate_metrics,
    )
    return Aggregation(aggregator=aggregator, find=aggregator.row_finder(catalog.rows))
