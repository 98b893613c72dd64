"""Events about programs of containers that are not simulated."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONTAINER_STATUSES
from mockube.container_runtime.behavior import (
    NOT_SIMULATED,
    WAITS,
    end_of_handler,
    end_without_program,
    not_simulated,
)
from mockube.container_runtime.config.variables import expand_probe_command
from mockube.container_runtime.pod_script import name_unknown_of
from mockube.container_runtime.runs import container_spec
from mockube.container_runtime.simulation_values import FAIL
from mockube.kubelet.step_effects import EmitEvent

from .container_status import Container, container_field
from .probe_results import scripted_results, unknown_of_port_probe
from .probing import Probe

_MAX_LIVE_ASSUMPTIONS: Final = 20
"""The condition of a pod has room for about ten."""


def not_simulated_events(containers: Sequence[Container]) -> list[EmitEvent]:
    """Return a warning for each container whose command is not simulated, and for each such probe and hook."""
    return [
        *(
            _event(container.spec, container.field, program, _end(container))
            for container in containers
            if container.unknown_program is not None and (program := container.unknown_program())
        ),
        *(
            _event(container.spec, container.field, program, _end_of_handler(container, field))
            for container in containers
            for field, program in _unknown_handlers(container)
        ),
        *(event for container in containers if (event := _unknown_port_probes(container)) is not None),
    ]


def _unknown_port_probes(container: Container) -> EmitEvent | None:
    """Return the warning about a container's probes at ports whose answers nobody knows."""
    if container.is_process:
        return None
    unknown = {
        probe.value: subject
        for probe in Probe
        if probe.value in container.spec
        and probe not in container.observed_run.probes
        and not scripted_results(probe, container.spec[probe.value], container.script)
        and (
            subject := unknown_of_port_probe(
                container.pod, container.spec, container.script, probe, container.context
            )
        )
    }
    if not unknown:
        return None
    subjects = [*dict.fromkeys(unknown.values())]
    are, succeed = "is" if len(subjects) == 1 else "are", "succeeds" if len(unknown) == 1 else "succeed"
    end = WAITS if container.waits_for_programs else f"its {_enumeration([*unknown])} {succeed} without it"
    message = f"{_enumeration(subjects)} {are} not simulated: {end}"
    return EmitEvent("Warning", NOT_SIMULATED, message, container.field)


def _enumeration(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _end(container: Container) -> str:
    """Return what becomes of a container without the program of its command."""
    if container.waits_for_programs:
        return WAITS
    return end_without_program(None if container.program.seconds is None else container.program.exit_code)


def _end_of_handler(container: Container, field: str) -> str:
    if container.waits_for_programs:
        return WAITS
    fails = container.context.predictions.unknown_programs(container.pod) == FAIL
    return end_of_handler(field, fails=fails)


def _unknown_handlers(container: Container) -> Iterator[tuple[str, str]]:
    """Yield the probes and hooks of a container that need a program that is not simulated, with the program."""
    if container.process is not None:
        return
    script, observed = container.script, container.observed_run
    for probe in Probe:
        handler = container.spec.get(probe.value) or {}
        is_interpreted = probe not in observed.probes and not scripted_results(probe, handler, script)
        if "exec" in handler and is_interpreted:
            argv = expand_probe_command(handler["exec"].get("command") or (), container.spec)
            program = container.context.predictions.unknown_handler_program(
                container.pod, container.spec, argv
            )
            if program:
                yield probe.value, program
    for hook, is_scripted in (("postStart", script.fail_post_start), ("preStop", script.fail_pre_stop)):
        handler = (container.spec.get("lifecycle") or {}).get(hook) or {}
        if "exec" in handler and hook not in observed.hooks and not is_scripted:
            argv = handler["exec"].get("command") or ()
            program = container.context.predictions.unknown_handler_program(
                container.pod, container.spec, argv
            )
            if program:
                yield hook, program


def waits_for_programs(pod: ReadOnlyTree) -> bool:
    """Return whether a container of a pod waits for what is not simulated."""
    status = pod.get("status") or {}
    statuses = (each for field in CONTAINER_STATUSES for each in status.get(field) or ())
    return any((each["state"].get("waiting") or {}).get("reason") == NOT_SIMULATED for each in statuses)


class LiveAssumptions(Struct):
    """What is not simulated of the commands of a pod that run in real time."""

    events: list[EmitEvent] = field(default_factory=list)

    def add(self, event: EmitEvent) -> bool:
        """Note an event; return whether it says something new: a loop may report one program, or many, without end."""
        is_new = event not in self.events and len(self.events) < _MAX_LIVE_ASSUMPTIONS
        if is_new:
            self.events.append(event)
        return is_new


def event_of_live_run(pod: ReadOnlyTree, name: str, program: str, end: str) -> EmitEvent | None:
    """Return the warning about a program that a command in real time has run; `end` says what happens without it."""
    container = container_spec(pod, name)
    if container is None:
        return None
    subject = name_unknown_of(pod, container, program)
    return _event(container, container_field(pod, name), subject, end)


def _event(container: ReadOnlyTree, field: str, subject: str, end: str) -> EmitEvent:
    return EmitEvent("Warning", NOT_SIMULATED, not_simulated(container, subject, end), field)
