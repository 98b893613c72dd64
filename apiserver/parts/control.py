"""The group `control.mockube.dev`, if the server has it, and what it controls."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Final

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema import builtin
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.authz.rbac.policy import RBACPolicy
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.control.advances import advance_followed
from mockube.apiserver.control.changes import Changes
from mockube.apiserver.control.clock import Clocks
from mockube.apiserver.control.controllers import Controllers
from mockube.apiserver.control.explanations import Explanations
from mockube.apiserver.control.fact_collector import FactSources
from mockube.apiserver.control.fault_objects import Faults
from mockube.apiserver.control.forks import Forks, ForkSocket
from mockube.apiserver.control.group import KINDS, ControlGroup
from mockube.apiserver.control.kind import compile_kinds
from mockube.apiserver.control.marks import Marks
from mockube.apiserver.control.page_tokens import PageTokens
from mockube.apiserver.control.participants import Participants
from mockube.apiserver.control.requests import Requests
from mockube.apiserver.control.rewinds import Rewinds
from mockube.apiserver.control.role_advice import RoleAdvices
from mockube.apiserver.control.server_control import ClockObjects, ControlObjects, NoControl, ServerControl
from mockube.apiserver.control.snapshots import Snapshots
from mockube.apiserver.control.store import ControlStore
from mockube.apiserver.control.strategy import ControlStrategy
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.http.controllers_page import ManagerPage
from mockube.apiserver.registry.moments import Moments
from mockube.apiserver.registry.registry import Registry
from mockube.component_base.clock import ClusterClock

from .context import ApiServerContext
from .observation import Observation
from .outgoing import make_kubelet_logs

_SHARED: Final = "the servers of a shared etcd have clocks of their own: --etcd-servers is set"


def add_control_kinds(config: Config, catalog: Catalog) -> None:
    """Serve the kinds of the group, if the server has it; discovery and OpenAPI omit them if it is unlisted."""
    if config.control_mode == "off":
        return
    for compiled in _compiled_kinds(config.features.kubernetes_version):
        if config.control_mode == "unlisted":
            catalog.unlist(compiled.row.group_resource)
        catalog.add_reserved([compiled])


@cache
def _compiled_kinds(release: str) -> Sequence[CustomVersion]:
    """Return the kinds, which do not change: all servers of the process can share them."""
    return [*compile_kinds(KINDS, builtin.load(release))]


def make_control(
    context: ApiServerContext,
    registry: Registry,
    policy: RBACPolicy,
    observation: Observation | None,
    reconciled: Collection[GroupResource],
) -> NoControl:
    """Return the group, or what there is without it; `reconciled` are the resources of packs."""
    if context.config.control_mode == "off" or observation is None:
        return NoControl(registry)
    objects = _make_objects(context, registry, observation)
    strategies = [*_strategies(context, registry, policy, observation, objects, reconciled)]
    store = ControlStore(context.clock, observation.first_revision)
    return ServerControl(objects, ControlGroup(registry, store, strategies))


def _make_objects(context: ApiServerContext, registry: Registry, observation: Observation) -> ControlObjects:
    marks, socket = Marks(registry), context.config.serving.fork_socket
    moments = Moments(registry, marks.find)
    snapshots = Snapshots(registry, context.kv, moments)
    return ControlObjects(
        faults=Faults(registry, observation.injector),
        forks=Forks(registry, moments, snapshots, None if socket is None else ForkSocket(socket).make),
        marks=marks,
        moments=moments,
        sessions=PageSessions(context.clock),
        snapshots=snapshots,
        clock=_make_clock(context, registry, observation),
    )


def _strategies(
    context: ApiServerContext,
    registry: Registry,
    policy: RBACPolicy,
    observation: Observation,
    objects: ControlObjects,
    reconciled: Collection[GroupResource],
) -> Iterator[ControlStrategy]:
    recorder, moments, config = observation.recorder, objects.moments, context.config
    requests, changes = (
        Requests(recorder, registry, policy),
        Changes(registry, config.control.control_changes, policy),
    )
    read_controllers = context.environment.read_controllers or ManagerPage(config.serving.component_urls).read
    logs = make_kubelet_logs(context, registry)
    yield RoleAdvices(registry, recorder, moments, policy)
    yield changes
    yield Controllers(read_controllers, registry, policy)
    yield Explanations(registry, FactSources(logs=logs, changes=changes, reconciled=reconciled), requests)
    yield objects.faults
    yield objects.forks
    yield objects.marks
    yield PageTokens(objects.sessions)
    yield requests
    yield Rewinds(registry, context.kv, moments, objects.snapshots, context.on_restored)
    yield objects.snapshots
    if objects.clock is not None:
        yield objects.clock.clocks
        yield objects.clock.participants


def _make_clock(
    context: ApiServerContext, registry: Registry, observation: Observation
) -> ClockObjects | None:
    """Return the objects of a clock that can be changed."""
    clock, recorder = context.clock, observation.recorder
    if not isinstance(clock, ClusterClock):
        return None
    participants = Participants(clock)

    def advance(seconds: float, is_over: Callable[[], bool]) -> Awaitable[None]:
        return advance_followed(
            clock,
            seconds,
            lambda: recorder.count,
            lambda: recorder.in_progress > 0,
            participants=participants,
            is_over=is_over,
        )

    refusal = _SHARED if context.config.store.etcd_servers else ""
    clocks = Clocks(clock, advance, registry, observation.quiet_time, refusal=refusal)
    return ClockObjects(clocks=clocks, participants=participants)
