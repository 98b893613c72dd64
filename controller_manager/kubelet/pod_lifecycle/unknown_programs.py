"""Events about programs of containers that are not simulated."""

from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.program import name_unknown
from mockube.controller_manager.kubelet.effects import EmitEvent
from mockube.controller_manager.kubelet.pod_lifecycle.container_status import Container
from mockube.controller_manager.kubelet.pod_lifecycle.containers import PodContainers, containers_of
from mockube.controller_manager.kubelet.pod_script import script_of

NOT_SIMULATED: Final = "NotSimulated"
"""The reason of the event about a program that is not simulated."""
CONTINUES: Final = "its exit code is 127, and the command that called it goes on"
"""What happens where an interactive command calls one."""


def not_simulated_events(containers: PodContainers) -> list[EmitEvent]:
    """Return a warning for each container whose command is not simulated."""
    return [
        _event(container, container.not_simulated, end_without_program(_exit_code(container)))
        for container, _ in (*containers.init, *containers.main, *containers.ephemeral)
        if container.not_simulated
    ]


def event_of_live_run(pod: ReadOnlyTree, name: str, program: str, end: str) -> EmitEvent | None:
    """Return the warning about a program that a command in real time has run; `end` says what happens without it."""
    script = script_of(meta.annotations(pod))
    containers = containers_of(pod, script, has_ids=False)
    for container, _ in (*containers.init, *containers.main, *containers.ephemeral):
        if container.name == name:
            has_script = script.command(name) is not None
            return _event(container, name_unknown(container.spec, program, has_script=has_script), end)
    return None


def _exit_code(container: Container) -> int | None:
    return None if container.program.seconds is None else container.program.exit_code


def end_without_program(exit_code: int | None) -> str:
    """Return what becomes of a container; it runs on without an exit code."""
    if exit_code is None:
        return "the container runs without it until it is stopped"
    return f"the container ends with exit code {exit_code} without it"


def _event(container: Container, subject: str, end: str) -> EmitEvent:
    image = container.spec.get("image")
    program = subject if subject.startswith("the image ") else f"{subject} of the image {image}"
    return EmitEvent("Warning", NOT_SIMULATED, f"{program} is not simulated: {end}", container.field)
