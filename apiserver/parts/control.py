"""The group `control.mockube.dev`, if the server has it, and what it controls."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from msgspec import Struct

from mockube.apimachinery.schema import builtin
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.control.changes import Changes
from mockube.apiserver.control.clock import Clocks, advance_followed
from mockube.apiserver.control.fault_objects import Faults, labels_in
from mockube.apiserver.control.faults import FaultInjector
from mockube.apiserver.control.group import KINDS, ControlGroup
from mockube.apiserver.control.kind import compile_kinds
from mockube.apiserver.control.marks import Marks
from mockube.apiserver.control.page_tokens import PageTokens
from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.control.requests import Requests
from mockube.apiserver.control.rewinds import OnRestored, Rewinds
from mockube.apiserver.control.store import ControlStore
from mockube.apiserver.control.strategy import ControlStrategy
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.registry.moments import Moments
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.hooks import HookPoints, RequestHook
from mockube.apiserver.request.request import Request
from mockube.apiserver.store import initial_revision
from mockube.component_base.clock import Clock, ClusterClock
from mockube.etcd.kv import KV

from .environment import ServerEnvironment

_SHARED: Final = "the servers of a shared etcd have clocks of their own: --etcd-servers is set"


def add_control_kinds(config: Config, catalog: Catalog) -> None:
    """Serve the kinds of the group, if the server has it; discovery and OpenAPI omit them if it is unlisted."""
    if config.control_mode == "off":
        return
    for compiled in compile_kinds(KINDS, builtin.load(config.features.kubernetes_version)):
        if config.control_mode == "unlisted":
            catalog.unlist(compiled.row.group_resource)
        catalog.add_reserved([compiled])


class Controls(Struct, frozen=True, kw_only=True):
    """What controls and observes a server; nothing if it has no control."""

    recorder: RequestRecorder | None = None
    injector: FaultInjector | None = None
    faults: Faults | None = None
    """The objects of the injected faults; None if the group is off."""
    clocks: Clocks | None = None
    """The object of the clock; None if the group is off, or if the clock cannot be changed."""
    group: ControlGroup | None = None
    sessions: PageSessions | None = None
    """The sessions of the page; None if the group is off."""
    moments: Moments | None = None
    """Finds moments by the Marks, too; None if there are none."""


def make_controls(  # noqa: PLR0913 - each argument is a part
    config: Config,
    environment: ServerEnvironment,
    cluster: Registry,
    hooks: HookPoints,
    watches: Callable[[], Iterable[Request]],
    *,
    kv: KV,
    on_restored: OnRestored,
) -> Controls:
    """Return what controls the server; `watches` returns the watches in progress. Revisions begin at the time, so that no watch of an earlier server resumes."""
    is_off = config.control_mode == "off"
    if is_off and not environment.is_embedded:
        return Controls()
    clock, first_revision = environment.clock, initial_revision(environment.clock.now())
    recorder = RequestRecorder(
        clock,
        max_calls=config.control.control_requests,
        first_version=first_revision,
        journal=cluster.journal,
    )
    injector = FaultInjector(clock, environment.random, partial(labels_in, cluster), watches)
    if environment.is_embedded:  # an advance waits for requests that it counts
        hooks.before_endpoint.add(injector.inject)
    else:
        injector.on_change.append(_HookOfFaults(injector, hooks).update)
    if is_off:
        return Controls(recorder=recorder, injector=injector)
    requests = Requests(recorder, cluster.layout.root)
    changes = Changes(cluster, config.control.control_changes)
    faults, marks = Faults(cluster, injector), Marks(cluster)
    moments = Moments(cluster, marks.find)
    clocks = _make_clocks(config, clock, recorder)
    rewinds, sessions = Rewinds(cluster, kv, moments, on_restored), PageSessions(clock.real)
    strategies: list[ControlStrategy] = [changes, faults, marks, PageTokens(sessions), requests, rewinds]
    if clocks is not None:
        strategies.append(clocks)
    group = ControlGroup(cluster, ControlStore(clock, first_revision), strategies)
    return Controls(
        recorder=recorder,
        injector=injector,
        faults=faults,
        clocks=clocks,
        group=group,
        sessions=sessions,
        moments=moments,
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


def _make_clocks(config: Config, clock: Clock, recorder: RequestRecorder) -> Clocks | None:
    """Return the object of a clock that can be changed. The program in whose process the server runs replaces its `advance_by`."""
    if not isinstance(clock, ClusterClock):
        return None

    def advance(seconds: float) -> Awaitable[None]:
        return advance_followed(clock, seconds, lambda: recorder.count, lambda: recorder.in_progress > 0)

    has_others = bool(config.store.etcd_servers)
    return Clocks(clock, advance, refusal=_SHARED if has_others else "")
