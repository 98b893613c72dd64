"""What there is before the parts of a server, and what all of them may use."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from mockube.apiserver.background_tasks import TASKS
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.request.hooks import HookPoints
from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.task_supervisor import TaskSupervisor
from mockube.etcd.kv import KV

from .environment import ServerEnvironment
from .tracing import Traces, make_traces


class Lifecycle:
    """How far the server is."""

    def __init__(self) -> None:
        self._is_started = self._is_stopping = False

    def is_started(self) -> bool:
        return self._is_started

    def is_stopping(self) -> bool:
        """Return whether the server is shutting down: it still serves requests, but it is not ready."""
        return self._is_stopping

    def finish_start(self) -> None:
        self._is_started = True

    def begin_shutdown(self) -> None:
        self._is_stopping = True


class ApiServerContext(Struct, frozen=True, kw_only=True):
    config: Config
    environment: ServerEnvironment
    kv: KV
    """The store."""
    metrics: MetricsRegistry
    traces: Traces | None
    """None without the flag."""
    supervisor: TaskSupervisor
    hooks: HookPoints
    lifecycle: Lifecycle
    on_restored: list[Callable[[], Awaitable[None]]]
    """Awaited after a snapshot has replaced the content of the store."""

    @property
    def clock(self) -> Clock:
        return self.environment.clock

    @property
    def minor(self) -> str:
        """The minor release of Kubernetes that the server has."""
        return self.config.features.kubernetes_version


def make_context(config: Config, environment: ServerEnvironment, kv: KV) -> ApiServerContext:
    metrics = MetricsRegistry()
    return ApiServerContext(
        config=config,
        environment=environment,
        kv=kv,
        metrics=metrics,
        traces=make_traces(config, environment),
        supervisor=TaskSupervisor(environment.clock.real, TASKS, metrics),
        hooks=HookPoints(),
        lifecycle=Lifecycle(),
        on_restored=[],
    )
