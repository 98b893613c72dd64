"""Events about programs of containers that are not simulated."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import (
    NOT_SIMULATED,
    end_of_handler,
    end_without_program,
    not_simulated,
)
from mockube.container_runtime.config.variables import expand_probe_command
from mockube.container_runtime.pod_script import name_unknown_of
from mockube.container_runtime.runs import container_spec
from mockube.kubelet.step_effects import EmitEvent

from .container_status import Container, container_field
from .containers import PodContainers
from .probe_results import scripted_results, unknown_of_port_probe
from .probing import Probe

_MAX_LIVE_ASSUMPTIONS: Final = 20
"""The condition of a pod has room for about ten."""


def not_simulated_events(containers: PodContainers) -> list[EmitEvent]:
    """Return a warning for each container whose command is not simulated, and for each such probe and hook."""
    all_containers = [
        container for container, _ in (*containers.init, *containers.main, *containers.ephemeral)
    ]
    return [
        *(
            _event(container.spec, container.field, program, end_without_program(_exit_code(container)))
            for container in all_containers
            if container.unknown_program is not None and (program := container.unknown_program())
        ),
        *(
            _event(container.spec, container.field, program, end_of_handler(field, fails=_fails(container)))
            for container in all_containers
            for field, program in _unknown_handlers(container)
        ),
        *(event for container in all_containers if (event := _unknown_port_probes(container)) is not None),
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
    message = (
        f"{_enumeration(subjects)} {are} not simulated: its {_enumeration([*unknown])} {succeed} without it"
    )
    return EmitEvent("Warning", NOT_SIMULATED, message, container.field)


def _enumeration(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _fails(container: Container) -> bool:
    return container.script.fails_unknown_programs(default=container.context.fails_unknown_programs)


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


def _exit_code(container: Container) -> int | None:
    return None if container.program.seconds is None else container.program.exit_code


def _event(container: ReadOnlyTree, field: str, subject: str, end: str) -> EmitEvent:
    return EmitEvent("Warning", NOT_SIMULATED, not_simulated(container, subject, end), field)
