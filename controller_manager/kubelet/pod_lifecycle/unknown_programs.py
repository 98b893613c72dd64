"""Events about programs of containers that are not simulated."""

from typing import Final

from mockube.controller_manager.kubelet.effects import EmitEvent
from mockube.controller_manager.kubelet.pod_lifecycle.container_status import Container
from mockube.controller_manager.kubelet.pod_lifecycle.containers import PodContainers

NOT_SIMULATED: Final = "NotSimulated"
"""The reason of the event about a program that is not simulated."""


def not_simulated_events(containers: PodContainers) -> list[EmitEvent]:
    """Return a warning for each container whose command is not simulated."""
    return [
        EmitEvent("Warning", NOT_SIMULATED, _not_simulated_message(container), container.field)
        for container, _ in (*containers.init, *containers.main, *containers.ephemeral)
        if container.not_simulated
    ]


def _not_simulated_message(container: Container) -> str:
    image = container.spec.get("image")
    subject = container.not_simulated
    program = subject if subject.startswith("the image ") else f"{subject} of the image {image}"
    if container.program.seconds is None:
        end = "the container runs without it until it is stopped"
    else:
        end = f"the container ends with exit code {container.program.exit_code} without it"
    return f"{program} is not simulated: {end}"
