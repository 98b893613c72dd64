"""The probes of a simulated container that fail whatever its program does, because of the port that they name. Pure.

Nobody knows the ports on which a program that is not simulated listens, and containers need not declare them. So a connection
is refused only where no container of the pod runs such a program, and neither a container nor an annotation has the port.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.hosts import join_host_port
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.program import is_server_image
from mockube.controller_manager.kubelet.pod_lifecycle.container_programs import program_of_run
from mockube.controller_manager.kubelet.pod_lifecycle.probing import (
    Probe,
    UnresolvedPort,
    errored_message,
    probe_times,
    resolve_port,
    unhealthy_message,
)
from mockube.controller_manager.kubelet.pod_script import NEVER, Script


class ProbeFailure(Struct, frozen=True, kw_only=True):
    """The failure of each attempt of a probe."""

    message: str
    """The message of its Event."""
    is_unknown: bool = False
    """Whether the attempts have no result, so that they count neither as failures nor as successes."""


NO_FAILURES: Final[Mapping[Probe, ProbeFailure]] = {}


def probe_failures(
    pod: ReadOnlyTree, container: ReadOnlyTree, script: Script, pod_ip: str
) -> Mapping[Probe, ProbeFailure]:
    """Return the failing probes of a container. A probe that an annotation scripts is not among them."""
    probes = {
        probe: spec
        for probe in Probe
        if (spec := container.get(probe.value)) and not _is_scripted(probe, script)
    }
    if not probes:
        return NO_FAILURES
    failures = {
        probe: _failure(pod, container, script, probe, spec, pod_ip) for probe, spec in probes.items()
    }
    return {probe: failure for probe, failure in failures.items() if failure is not None}


def _is_scripted(probe: Probe, script: Script) -> bool:
    if probe is Probe.STARTUP:
        return script.startup_after > 0
    after = script.fail_readiness_after if probe is Probe.READINESS else script.fail_liveness_after
    return after != NEVER


def _failure(
    pod: ReadOnlyTree, container: ReadOnlyTree, script: Script, probe: Probe, spec: ReadOnlyTree, pod_ip: str
) -> ProbeFailure | None:
    action = spec.get("httpGet") or spec.get("tcpSocket") or spec.get("grpc")
    if not action:
        return None
    try:
        port = resolve_port(action["port"], container)
    except UnresolvedPort as error:
        return ProbeFailure(message=errored_message(probe, str(error)), is_unknown=True)
    if action.get("host") or not _is_closed(pod, port, script):
        return None
    return ProbeFailure(message=unhealthy_message(probe, _refusal(spec, join_host_port(pod_ip, port))))


def _is_closed(pod: ReadOnlyTree, port: int, script: Script) -> bool:
    """Return whether nothing in the pod can listen on the port."""
    if str(port) in script.answers or pod["spec"].get("hostNetwork"):
        return False
    has_port = any(
        declared["containerPort"] == port and (declared.get("protocol") or "TCP") == "TCP"
        for container in every_container(pod["spec"])
        for declared in container.get("ports") or ()
    )
    running = (
        *pod["spec"]["containers"],
        *(pod["spec"].get("ephemeralContainers") or ()),
        *(init for init in pod["spec"].get("initContainers") or () if init.get("restartPolicy") == "Always"),
    )
    return not has_port and not any(_may_listen(pod, container, script) for container in running)


def _may_listen(pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> bool:
    """Return whether the container's program is not simulated, or is one that a user's script stands for."""
    is_scripted = script.command(container["name"]) is not None
    return is_scripted or is_server_image(container) or program_of_run(pod, container, script)() is None


def _refusal(spec: ReadOnlyTree, address: str) -> str:
    """Return what a kubelet reports of a connection that is refused."""
    refused = f"dial tcp {address}: connect: connection refused"
    if spec.get("httpGet"):
        action = spec["httpGet"]
        path = action.get("path") or "/"
        url = f"{(action.get('scheme') or 'HTTP').lower()}://{address}/{path.removeprefix('/')}"
        return f"Get {quote(url)}: {refused}"
    if spec.get("grpc"):
        # A gRPC client connects again until its time is over.
        timeout = probe_times(spec).timeout
        return f'timeout: failed to connect service "{address}" within {timeout}s: context deadline exceeded'
    return refused
