"""The group `control.mockube.dev`, if the server has it, and what it controls."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Final

from msgspec import Struct

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema import builtin
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.control.advances import advance_followed
from mockube.apiserver.control.changes import Changes
from mockube.apiserver.control.clock import Clocks
from mockube.apiserver.control.controllers import Controllers
from mockube.apiserver.control.explanations import Explanations
from mockube.apiserver.control.fact_collector import FactSources
from mockube.apiserver.control.fault_objects import (
    Faults,
    labels_in,
    node_in,
    revision_before,
    steal_lease,
)
from mockube.apiserver.control.faults import FaultInjector, FaultStore
from mockube.apiserver.control.forks import Forks, ForkSocket
from mockube.apiserver.control.group import KINDS, ControlGroup
from mockube.apiserver.control.kind import compile_kinds
from mockube.apiserver.control.marks import Marks
from mockube.apiserver.control.page_tokens import PageTokens
from mockube.apiserver.control.participants import Participants
from mockube.apiserver.control.quiet import QuietTime
from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.control.requests import Requests
from mockube.apiserver.control.rewinds import Rewinds
from mockube.apiserver.control.role_advice import RoleAdvices
from mockube.apiserver.control.snapshots import Snapshots
from mockube.apiserver.control.store import ControlStore
from mockube.apiserver.control.strategy import ControlStrategy
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.http.controllers_page import ManagerPage
from mockube.apiserver.registry.moments import Moments
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.hooks import HookPoints, RequestHook
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.snapshot_endpoint import FindSnapshot, OnRestored
from mockube.apiserver.store import initial_revision
from mockube.component_base.clock import ClusterClock
from mockube.etcd.kv import KV

from .environment import ServerEnvironment
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


class Controls(Struct, frozen=True, kw_only=True):
    """What controls and observes a server; nothing if it has no control."""

    recorder: RequestRecorder | None = None
    quiet_time: QuietTime | None = None
    """How long nobody has written to the cluster."""
    injector: FaultInjector | None = None
    faults: Faults | None = None
    """The objects of the injected faults; None if the group is off."""
    clocks: Clocks | None = None
    """The object of the clock; None if the group is off, or if the clock cannot be changed."""
    participants: Participants | None = None
    """The programs that an advance waits for."""
    group: ControlGroup | None = None
    forks: Forks | None = None
    """Makes the forks; None if the group is off."""
    find_snapshot: FindSnapshot | None = None
    """Finds the contents of Snapshots; None if the group is off."""
    sessions: PageSessions | None = None
    """The sessions of the page; None if the group is off."""
    moments: Moments | None = None
    """Finds moments by the Marks, too; None if there are none."""
    marks: Marks | None = None
    """The names of revisions; None if the group is off."""


def make_controls(  # noqa: PLR0913 - each argument is a part
    config: Config,
    environment: ServerEnvironment,
    cluster: Registry,
    hooks: HookPoints,
    watches: Callable[[], Iterable[Request]],
    *,
    kv: KV,
    rights: Rights,
    on_restored: OnRestored,
    reconciled: Collection[GroupResource] = (),
) -> Controls:
    """Return what controls the server; `watches` returns the watches in progress, `reconciled` are the resources of packs. Revisions begin at the time, so that no watch of an earlier server resumes."""
    is_off = config.control_mode == "off"
    if is_off and not environment.is_embedded:
        return Controls()
    clock, first_revision = environment.clock, initial_revision(environment.clock.now())
    quiet_time = QuietTime(clock)
    recorder = RequestRecorder(
        clock,
        quiet_time=quiet_time,
        max_calls=config.control.control_requests,
        max_body_bytes=config.control.control_request_bodies,
        first_version=first_revision,
        journal=cluster.journal,
    )
    injector = FaultInjector(
        clock,
        environment.random,
        FaultStore(
            labels_of=partial(labels_in, cluster),
            node_of=partial(node_in, cluster),
            steal=partial(steal_lease, cluster),
            revision_before=partial(revision_before, cluster),
        ),
        watches,
    )
    if environment.is_embedded:  # an advance waits for requests that it counts
        hooks.before_endpoint.add(injector.inject)
    else:
        injector.on_change.append(_HookOfFaults(injector, hooks).update)
    if is_off:
        return Controls(recorder=recorder, injector=injector, quiet_time=quiet_time)
    requests = Requests(recorder, cluster, rights.rbac.policy)
    changes = Changes(cluster, config.control.control_changes, rights.rbac.policy)
    faults, marks = Faults(cluster, injector), Marks(cluster)
    moments = Moments(cluster, marks.find)
    participants = Participants(clock) if isinstance(clock, ClusterClock) else None
    clocks = _make_clocks(config, cluster, recorder, quiet_time, participants)
    snapshots = Snapshots(cluster, kv, moments)
    rewinds = Rewinds(cluster, kv, moments, snapshots, on_restored)
    sessions = PageSessions(clock)
    socket = config.serving.fork_socket
    forks = Forks(cluster, moments, snapshots, None if socket is None else ForkSocket(socket).make)
    advices = RoleAdvices(cluster, recorder, moments, rights.rbac.policy)
    sources = FactSources(
        logs=make_kubelet_logs(config, environment, cluster), changes=changes, reconciled=reconciled
    )
    explanations = Explanations(cluster, sources, requests)
    strategies: list[ControlStrategy] = [
        advices,
        changes,
        Controllers(
            environment.read_controllers or ManagerPage(config.serving.component_urls).read,
            cluster,
            rights.rbac.policy,
        ),
        explanations,
        faults,
        forks,
        marks,
        PageTokens(sessions),
        requests,
        rewinds,
        snapshots,
    ]
    strategies += [each for each in (clocks, participants) if each is not None]
    group = ControlGroup(cluster, ControlStore(clock, first_revision), strategies)
    return Controls(
        recorder=recorder,
        quiet_time=quiet_time,
        injector=injector,
        faults=faults,
        clocks=clocks,
        participants=participants,
        group=group,
        sessions=sessions,
        forks=forks,
        find_snapshot=snapshots.data,
        moments=moments,
        marks=marks,
    )


class _HookOfFaults:
    """Adds the hook of faults while there are some: a request without faults does not pass it, and Leases are renewed together."""

    def __init__(self, injector: FaultInjector, hooks: HookPoints) -> None:
        self._injector, self._point = injector, hooks.before_endpoint
        self._hook: RequestHook | None = None

    def update(self) -> None:
        if not self._injector.has_faults:
            if self._hook is not None:
                self._hook.remove()
            self._hook = None
        elif self._hook is None:
            self._hook = self._point.add(self._injector.inject)


def _make_clocks(
    config: Config,
    cluster: Registry,
    recorder: RequestRecorder,
    quiet_time: QuietTime,
    participants: Participants | None,
) -> Clocks | None:
    """Return the object of a clock that can be changed. The program in whose process the server runs replaces its `advance_by`."""
    clock = cluster.clock
    if not isinstance(clock, ClusterClock) or participants is None:
        return None

    def advance(seconds: float, is_over: Callable[[], bool]) -> Awaitable[None]:
        return advance_followed(
            clock,
            seconds,
            lambda: recorder.count,
            lambda: recorder.in_progress > 0,
            participants=participants,
            is_over=is_over,
        )

    has_others = bool(config.store.etcd_servers)
    return Clocks(clock, advance, cluster, quiet_time, refusal=_SHARED if has_others else "")
