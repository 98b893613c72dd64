"""Events about images of which nothing is known, and whose own programs containers run. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_NOT_SIMULATED
from mockube.container_runtime.behavior import (
    NOT_SIMULATED,
    WAITS,
    end_without_program,
    has_default_command,
    not_simulated,
)
from mockube.kubelet.step_effects import EmitEvent

from .container_status import Container

_SEPARATOR: Final = "; "
_MAX_MESSAGE: Final = 1024


def with_assumptions(
    present: Sequence[ReadOnlyTree], events: Iterable[EmitEvent], now: datetime
) -> Sequence[ReadOnlyTree]:
    """Return the conditions of a pod with what is not simulated of it, as the events of now and the ones before say."""
    messages = [event.message for event in events if event.reason == NOT_SIMULATED]
    if not messages:
        return present
    old = conditions.find(present, CONDITION_NOT_SIMULATED)
    known = old["message"].split(_SEPARATOR) if old is not None else []
    condition = {
        "type": CONDITION_NOT_SIMULATED,
        "status": "True",
        "reason": NOT_SIMULATED,
        "message": _SEPARATOR.join(dict.fromkeys([*known, *messages]))[:_MAX_MESSAGE],
    }
    return conditions.set_condition(present, condition, now)


def unknown_image_events(container: Container) -> tuple[EmitEvent, ...]:
    """Return the warnings about a container that runs the command of an image of which nothing is known, mounts such an image, or
    gives its server a configuration that is not read.
    """
    return (*_command_events(container), *_volume_events(container), *_configuration_events(container))


def _configuration_events(container: Container) -> Iterator[EmitEvent]:
    if container.process is not None:
        return
    unread = container.context.predictions.unread_configuration(container.pod, container.spec)
    if unread:
        end = WAITS if container.waits_for_programs else end_without_program(None)
        missing = container.context.predictions.missing_server(container.spec)
        message = not_simulated(container.spec, unread, end, missing)
        yield EmitEvent("Warning", NOT_SIMULATED, message, container.field)


def _volume_events(container: Container) -> Iterator[EmitEvent]:
    images = {
        volume["name"]: (volume["image"] or {}).get("reference") or ""
        for volume in container.pod["spec"].get("volumes") or ()
        if "image" in volume
    }
    for mount in container.spec.get("volumeMounts") or () if images else ():
        image = images.get(mount["name"], "")
        if image and not container.context.predictions.knows_image({"image": image}):
            end = WAITS if container.waits_for_programs else f"the volume {mount['name']} is empty"
            message = f"the image {image} is not simulated: {end}"
            yield EmitEvent("Warning", NOT_SIMULATED, message, container.field, of_owner=True)


def _command_events(container: Container) -> tuple[EmitEvent, ...]:
    has_script = container.script.command(container.name) is not None or container.script.times_runs
    runs_image = container.process is None and has_default_command(container.spec) and not has_script
    if not runs_image or container.context.predictions.knows_default_command(container.spec):
        return ()
    seconds, exit_code = container.program.seconds, container.program.exit_code
    end = end_without_program(None if seconds is None else exit_code)
    end = WAITS if container.waits_for_programs else end
    message = not_simulated(container.spec, "", end)
    return (EmitEvent("Warning", NOT_SIMULATED, message, container.field, of_owner=True),)
