"""Events about containers without a command whose image ends at once, such as busybox without standard input."""

from shlex import join
from typing import Final

from mockube.container_runtime.behavior import has_default_command, has_open_input
from mockube.kubelet.step_effects import EmitEvent

from .container_status import Container, Role
from .containers import PodContainers

ENDS_AT_ONCE: Final = "EndsAtOnce"
"""The reason of the event. A real kubelet records no such event."""


def default_command_events(containers: PodContainers) -> list[EmitEvent]:
    """Return a warning for each main container and sidecar that ends at once because its pod has no command for it."""
    return [
        EmitEvent("Warning", ENDS_AT_ONCE, _message(container), container.field)
        for container, _ in (*containers.init, *containers.main)
        if container.role is not Role.INIT and _ends_at_once(container)
    ]


def _ends_at_once(container: Container) -> bool:
    has_script = container.script.command(container.name) is not None or container.script.times_runs
    return (
        container.process is None
        and has_default_command(container.spec)
        and not has_script
        and bool(container.context.predictions.command_of(container.spec))
        and container.program.seconds == 0
    )


def _message(container: Container) -> str:
    end = f"ends at once with exit code {container.program.exit_code}{_missing_input(container)}"
    command = join(container.context.predictions.command_of(container.spec))
    return (
        f"The image {container.spec['image']} runs {command} if its pod has no command: it {end}. "
        'To let it run, set a command such as ["sleep", "infinity"]'
    )


def _missing_input(container: Container) -> str:
    reads_input = container.context.predictions.reads_input(container.spec) and not has_open_input(
        container.spec
    )
    return " because it has no standard input" if reads_input else ""
