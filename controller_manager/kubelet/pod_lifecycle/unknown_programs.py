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


def not_simulated_events(containers: PodContainers) -> list[EmitEvent]:
    """Return a warning for each container whose command is not simulated."""
    return [
        _event(container, container.not_simulated, _exit_code(container))
        for container, _ in (*containers.init, *containers.main, *containers.ephemeral)
        if container.not_simulated
    ]


def event_of_live_run(pod: ReadOnlyTree, name: str, program: str, exit_code: int | None) -> EmitEvent | None:
    """Return the warning about a program that a command in real time has run; the command goes on without an exit code."""
    script = script_of(meta.annotations(pod))
    containers = containers_of(pod, script, has_ids=False)
    for container, _ in (*containers.init, *containers.main, *containers.ephemeral):
        if container.name == name:
            has_script = script.command(name) is not None
            return _event(container, name_unknown(container.spec, program, has_script=has_script), exit_code)
    return None


def _exit_code(container: Container) -> int | None:
    return None if container.program.seconds is None else container.program.exit_code


def _event(container: Container, subject: str, exit_code: int | None) -> EmitEvent:
    image = container.spec.get("image")
    program = subject if subject.startswith("the image ") else f"{subject} of the image {image}"
    if exit_code is None:
        end = "the container runs without it until it is stopped"
    else:
        end = f"the container ends with exit code {exit_code} without it"
    return EmitEvent("Warning", NOT_SIMULATED, f"{program} is not simulated: {end}", container.field)
