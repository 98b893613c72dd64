"""The health checks of a server."""

from collections.abc import Callable

from mockube.apiserver.bootstrap.rbac_hook import BootstrapRoles
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.health import HealthChecks, server_checks
from mockube.component_base.task_supervisor import TaskSupervisor

from .environment import ServerEnvironment


def make_health(  # noqa: PLR0913 - each argument is a part
    config: Config,
    environment: ServerEnvironment,
    registry: Registry,
    roles: BootstrapRoles,
    supervisor: TaskSupervisor,
    *,
    is_started: Callable[[], bool],
    is_stopping: Callable[[], bool],
) -> HealthChecks:
    checks = server_checks(
        registry,
        is_started=is_started,
        is_stopping=is_stopping,
        roles_problem=roles.problem if "RBAC" in config.authorization.types else None,
        task_problem=supervisor.problem,
        has_flow_control=config.features.enable_priority_and_fairness,
        awaits_controllers=config.serving.ready_after_controllers,
    )
    return HealthChecks(checks, environment.clock.real)
