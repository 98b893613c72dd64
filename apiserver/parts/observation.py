"""What observes the requests to a server and the writes, and disturbs them: there is nothing of it if nobody can control the server."""

from functools import partial

from msgspec import Struct

from mockube.apiserver.control.fault_objects import labels_in, node_in, revision_before, steal_lease
from mockube.apiserver.control.faults import FaultInjector, FaultStore
from mockube.apiserver.control.quiet import QuietTime
from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.hooks import HookPoints, RequestHook
from mockube.apiserver.store import initial_revision
from mockube.etcd.kv import Revision

from .context import ApiServerContext


class Observation(Struct, frozen=True, kw_only=True):
    first_revision: Revision
    """Where the revisions of control begin: at the time, so that no watch of an earlier server resumes."""
    quiet_time: QuietTime
    """How long nobody has written to the cluster."""
    recorder: RequestRecorder
    injector: FaultInjector


def make_observation(context: ApiServerContext, registry: Registry) -> Observation | None:
    is_embedded, control = context.environment.is_embedded, context.config.control
    if context.config.control_mode == "off" and not is_embedded:
        return None
    clock, first_revision = context.clock, initial_revision(context.clock.now())
    quiet_time = QuietTime(clock)
    recorder = RequestRecorder(
        clock,
        quiet_time=quiet_time,
        max_calls=control.control_requests,
        max_body_bytes=control.control_request_bodies,
        first_version=first_revision,
        journal=registry.journal,
    )
    injector = _make_injector(context, registry)
    if is_embedded:  # an advance waits for requests that it counts
        context.hooks.before_endpoint.add(injector.inject)
    else:
        injector.on_change.append(_HookOfFaults(injector, context.hooks).update)
    return Observation(
        first_revision=first_revision, quiet_time=quiet_time, recorder=recorder, injector=injector
    )


def _make_injector(context: ApiServerContext, registry: Registry) -> FaultInjector:
    store = FaultStore(
        labels_of=partial(labels_in, registry),
        node_of=partial(node_in, registry),
        steal=partial(steal_lease, registry),
        revision_before=partial(revision_before, registry),
    )
    return FaultInjector(context.clock, context.environment.random, store, context.hooks.watches)


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
