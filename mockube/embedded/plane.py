"""A control plane in one process: what its clock needs to be advanced, and what a fork of it needs."""

from collections.abc import Callable

from msgspec import Struct

from mockube.apiserver.control.faults import FaultInjector
from mockube.apiserver.control.quiet import MIN_QUIET_SECONDS, QuietTime
from mockube.apiserver.parts.observation import Observation
from mockube.apiserver.registry.component_statuses import ComponentHealth
from mockube.client.verbs import Client
from mockube.component_base.clock import ClusterClock, QuietTurns, advance_in_steps, never
from mockube.controller_manager.app import Manager
from mockube.controller_manager.config.settings import Config

from .determinism import SteppedWork
from .serving import EmbeddedServer


class ForkableControlPlane(Struct, frozen=True, kw_only=True):
    clock: ClusterClock
    server: EmbeddedServer
    faults: FaultInjector
    quiet_time: QuietTime
    controllers: Client
    """The client of mockube's own components."""
    fork_problem: str
    """Why the control plane cannot be forked; "" if it can."""
    stepped: SteppedWork | None = None
    """What runs the calls of a cluster with a seed."""

    async def advance(self, seconds: float, is_over: Callable[[], bool] = never) -> None:
        """Advance the clock by some seconds, or until it `is_over`, and run everything that is due by then."""
        self.quiet_time.restart()
        if self.stepped is not None:
            await self.stepped.advance(seconds, self._is_quiet, is_over)
        else:
            requests = QuietTurns(lambda: self.faults.is_busy)
            idleness = self.server.api_server.control.with_participants(requests)
            await advance_in_steps(self.clock, seconds, idleness, self._is_quiet, is_over)

    def _is_quiet(self) -> bool:
        return self.quiet_time.is_over


def observation_of(server: EmbeddedServer, config: Config) -> Observation:
    """Return what observes the requests to a server; `config` is that of its manager."""
    observation = server.api_server.observation
    assert observation is not None, "an embedded server records requests"
    observation.quiet_time.seconds = _quiet_seconds(config)
    return observation


def _quiet_seconds(config: Config) -> float:
    """Return how long after a write a node without heartbeats has been noticed, too."""
    controllers = config.controllers
    silent_seconds = controllers.node_monitor_grace_period + 2 * controllers.node_monitor_period
    return max(silent_seconds, MIN_QUIET_SECONDS)


def health_of(manager: Manager) -> ComponentHealth:
    if any(check() for check in [*manager.status_sources.checks.values()]):
        return ComponentHealth(is_good=False, message="HTTP probe failed with statuscode: 500")
    return ComponentHealth(is_good=True, message="ok")
