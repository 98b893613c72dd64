"""The served kinds and resources: those of the minor release, of packs, and custom ones."""

from collections.abc import Sequence

from mockube.apimachinery.schema import builtin
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.metrics import resource_metrics
from mockube.apiserver.kinds.resource_config import read_overrides
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.apiserver.packs.compiled_packs import pack_conversions, pack_kinds

from .control import add_control_kinds


def make_catalog(config: Config) -> Catalog:
    features = config.features
    minor = features.kubernetes_version
    kinds = kinds_of(minor, read_overrides(features.runtime_config, minor), features.gates)
    metrics = (resource_metrics.group_of(minor),) if features.simulate_metrics else ()
    functions = pack_conversions(features.packs)
    catalog = Catalog((*kinds.groups, *metrics), kinds=kinds, functions=functions)
    for custom_versions in pack_kinds(features.packs, builtin.load(minor)):
        catalog.add(custom_versions)
    add_control_kinds(config, catalog)
    return catalog


def documented_resources(catalog: Catalog) -> Sequence[Resource]:
    """Return the resources that OpenAPI describes; metrics have no schemas."""
    return [
        row
        for row in catalog.rows.values()
        if catalog.is_listed(row.group_resource) and (row.custom or row.group != resource_metrics.GROUP_NAME)
    ]
