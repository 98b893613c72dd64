"""The group `control.mockube.dev`, if the server has it, and what it controls."""

from collections.abc import Awaitable, Callable, Sequence

from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.schema import builtin
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.control.group import KINDS, ControlGroup
from mockube.apiserver.control.kind import compile_kinds
from mockube.apiserver.control.marks import Marks
from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.control.requests import REQUEST, Requests
from mockube.apiserver.control.rewinds import Rewinds
from mockube.apiserver.control.store import ControlStore
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.registry.moments import Moments
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.store import initial_revision
from mockube.etcd.kv import KV, Revision

from .environment import ServerEnvironment


def add_control_kinds(config: Config, catalog: Catalog) -> None:
    """Serve the kinds of the group, if the server has it; discovery and OpenAPI omit them if it is unlisted."""
    if config.control_mode == "off":
        return
    for compiled in compile_kinds(KINDS, builtin.load(config.features.kubernetes_version)):
        if config.control_mode == "unlisted":
            catalog.unlist(compiled.row.group_resource)
        catalog.add_reserved([compiled])


def make_recorder(
    config: Config, environment: ServerEnvironment, cluster: Registry
) -> RequestRecorder | None:
    """Return the recorder of requests; None if nobody could read them."""
    if config.control_mode == "off" and not environment.is_embedded:
        return None
    return RequestRecorder(
        environment.clock,
        max_calls=config.control.control_requests,
        first_version=initial_revision(environment.clock.now()),
        journal=cluster.journal,
    )


def make_control(
    config: Config,
    cluster: Registry,
    recorder: RequestRecorder | None,
    kv: KV,
    on_restored: Sequence[Callable[[], Awaitable[None]]],
) -> ControlGroup | None:
    """Return the group; its revisions begin at the time, so that no watch of an earlier server resumes."""
    if config.control_mode == "off" or recorder is None:
        return None

    def find_mark(name: str) -> Revision | None:
        return group.find_mark(name)  # it is made below, with the kinds that need this

    own_kv = ControlStore(cluster.clock, initial_revision(cluster.clock.now()))
    rewinds = Rewinds(cluster, kv, Moments(cluster, find_mark), on_restored)
    requests = Requests(recorder, cluster.layout.root + f"{CONTROL}/{REQUEST.plural}/".encode())
    group = ControlGroup(cluster, own_kv, [Marks(cluster), requests, rewinds])
    return group
