"""The results of the attempts of a simulated container's probes, over the time of a run. Pure.

An annotation scripts them. Otherwise a command of an exec probe is interpreted, and a port answers as the server that listens on it:
that of a known image, or of a known program. Nobody knows the ports and the answers of a program that is not simulated, because
containers need not declare them: a probe of it succeeds.
"""

from collections.abc import Mapping
from math import inf
from typing import Final

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.config.variables import expand_probe_command
from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.port_probe import PortAnswer, PortProbe
from mockube.container_runtime.start_errors import message_of_exec

from . import probing
from .container_context import ContainerContext
from .observations import SUCCESS, ProbeResult, Results
from .port_probes import port_result
from .probing import Probe, UnresolvedPort

SUCCESSES: Final[Results] = ((0.0, SUCCESS),)
NO_RESULTS: Final[Mapping[Probe, Results]] = {}


def probe_results(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    context: ContainerContext,
    *,
    restarts: int = 0,
) -> Mapping[Probe, Results]:
    """Return the results of a container's probes, without those that always succeed at once."""
    probes = [(probe, spec) for probe in Probe if (spec := container.get(probe.value))]
    if not probes:
        return NO_RESULTS
    observed = context.observed_run(container["name"])
    results = {}
    for probe, spec in probes:
        probe_timeline = scripted_results(probe, spec, script) or observed.results(probe, restarts)
        if probe_timeline is None and "exec" in spec:
            probe_timeline = _exec_results(pod, container, script, probe, context, restarts=restarts)
        elif probe_timeline is None:
            probe_timeline = _port_results(pod, container, script, probe, context)
        if probe_timeline and probe_timeline != SUCCESSES:
            results[probe] = probe_timeline
    return results


# --- scripted


def scripted_results(probe: Probe, spec: ReadOnlyTree, script: Script) -> Results:
    """Return the results that the annotations of a pod script; empty if they leave the probe alone."""
    if not script.has_probes:
        return ()
    output = next((text for name, text in _SCRIPTED_OUTPUTS.items() if name in spec), "")
    failure = ProbeResult(is_success=False, message=probing.unhealthy_message(probe, output))
    if probe is Probe.STARTUP:
        return _two_results(failure, script.startup_after, SUCCESS) if script.startup_after else ()
    after = script.fail_readiness_after if probe is Probe.READINESS else script.fail_liveness_after
    return _two_results(SUCCESS, after, failure) if after != inf else ()


def _two_results(before: ProbeResult, time: float, after: ProbeResult) -> Results:
    if time in (0, inf):
        return ((0.0, before if time else after),)
    return ((0.0, before), (time, after))


_SCRIPTED_OUTPUTS: Final = {
    "httpGet": "HTTP probe failed with statuscode: 500",
    "tcpSocket": "dial tcp: connect: connection refused",
    "grpc": 'service unhealthy (responded with "NOT_SERVING")',
    "exec": "",
}


# --- commands


def _exec_results(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    probe: Probe,
    context: ContainerContext,
    *,
    restarts: int,
) -> Results:
    spec = container[probe.value]
    argv = expand_probe_command(spec["exec"].get("command") or (), container)
    timeline = context.predictions.handler_timeline(pod, container, script, argv, restarts=restarts)
    timeout = float(probing.probe_times(spec).timeout)
    command = " ".join(argv)
    return tuple((time, exec_result(result, probe, command, timeout)) for time, result in timeline)


def exec_result(result: CommandResult | None, probe: Probe, command: str, timeout: float) -> ProbeResult:
    """Return the result of an attempt whose command has ended so, or whose result nobody can know."""
    if result is None:
        return SUCCESS
    if result.start_error:
        return ProbeResult(is_success=None, message=_not_started(probe, command, result))
    if result.seconds > timeout:
        output = f"command timed out: {quote(command)} timed out after {timeout:g}s"
    elif result.exit_code:
        output = result.output
    else:
        return ProbeResult(seconds=result.seconds)
    seconds = min(result.seconds, timeout)
    return ProbeResult(is_success=False, message=probing.unhealthy_message(probe, output), seconds=seconds)


def _not_started(probe: Probe, command: str, result: CommandResult) -> str:
    problem = message_of_exec(command, result.start_error)
    return probing.errored_message(probe, f"rpc error: code = Unknown desc = {problem}")


# --- ports


def _port_results(
    pod: ReadOnlyTree, container: ReadOnlyTree, script: Script, probe: Probe, context: ContainerContext
) -> Results:
    action = probing.port_action(container[probe.value])
    if not action:
        return ()
    try:
        port = probing.resolve_port(action["port"], container)
        times = (0.0, *context.predictions.port_changes(pod, port))
        return tuple(
            (time, result if isinstance(result, ProbeResult) else SUCCESS)
            for time in times
            for result in (_port_result_at(pod, container, script, probe, context, time),)
        )
    except UnresolvedPort as error:
        return ((0.0, ProbeResult(is_success=None, message=probing.errored_message(probe, str(error)))),)


def _port_result_at(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    probe: Probe,
    context: ContainerContext,
    seconds: float,
) -> ProbeResult | str:
    def ask(request: PortProbe) -> PortAnswer:
        return context.predictions.port_answer(pod, request, script, seconds=seconds)

    return port_result(pod, container, probe, context.pod_ip, ask)


def unknown_of_port_probe(
    pod: ReadOnlyTree, container: ReadOnlyTree, script: Script, probe: Probe, context: ContainerContext
) -> str:
    """Return what is not simulated, so that nobody knows the result of a probe at a port; "" if it is known."""
    if not probing.port_action(container.get(probe.value) or {}):
        return ""
    try:
        result = _port_result_at(pod, container, script, probe, context, 0.0)
    except UnresolvedPort:
        return ""
    return result if isinstance(result, str) else ""
