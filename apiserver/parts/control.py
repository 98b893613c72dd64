"""The group `control.mockube.dev`, if the server has it."""

from mockube.apimachinery.schema import builtin
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.control.group import KINDS, ControlGroup
from mockube.apiserver.control.kind import compile_kinds
from mockube.apiserver.control.marks import Marks
from mockube.apiserver.control.store import ControlStore
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.store import initial_revision


def add_control_kinds(config: Config, catalog: Catalog) -> None:
    """Serve the kinds of the group, if the server has it; discovery and OpenAPI omit them if it is unlisted."""
    if config.control_mode == "off":
        return
    for compiled in compile_kinds(KINDS, builtin.load(config.features.kubernetes_version)):
        if config.control_mode == "unlisted":
            catalog.unlist(compiled.row.group_resource)
        catalog.add_reserved([compiled])


def make_control(config: Config, cluster: Registry) -> ControlGroup | None:
    """Return the group; its revisions begin at the time, so that no watch of an earlier server resumes."""
    if config.control_mode == "off":
        return None
    kv = ControlStore(cluster.clock, initial_revision(cluster.clock.now()))
    return ControlGroup(cluster, kv, [Marks(cluster)])
