"""The health checks of a server."""

from mockube.apiserver.bootstrap.rbac_hook import BootstrapRoles
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.health import HealthChecks, server_checks

from .context import ApiServerContext


def make_health(context: ApiServerContext, registry: Registry, roles: BootstrapRoles) -> HealthChecks:
    config, lifecycle = context.config, context.lifecycle
    checks = server_checks(
        registry,
        is_started=lifecycle.is_started,
        is_stopping=lifecycle.is_stopping,
        roles_problem=roles.problem if "RBAC" in config.authorization.types else None,
        task_problem=context.supervisor.problem,
        has_flow_control=config.features.enable_priority_and_fairness,
        awaits_controllers=config.serving.ready_after_controllers,
    )
    return HealthChecks(checks, context.clock.real)
