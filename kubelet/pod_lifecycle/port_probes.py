"""The attempts of httpGet, tcpSocket and grpc probes: what a kubelet sends, and what it reports of the answer. Pure.

Upstream: pkg/probe/{http,tcp,grpc}. The answers come from the run-time, see `PortAnswer`.
"""

from collections.abc import Callable
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.hosts import is_address, join_host_port
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.port_probe import PortAnswer, PortProbe

from . import probing
from .observations import SUCCESS, ProbeResult
from .probing import Probe

_MAX_REDIRECTS: Final = 10
_HTTP_TO_HTTPS: Final = "http: server gave HTTP response to HTTPS client"
_MAX_WARNING: Final = 1024
"""The characters of a response that a warning has."""
_LOOPBACK: Final = {"localhost": "[::1]", "127.0.0.1": "127.0.0.1", "::1": "[::1]"}
"""The hosts of the node itself, with the address in Go's messages."""
_NODE_PORTS: Final = range(10248, 10260)
"""The ports of the kubelet, of kube-proxy and of the control plane's components."""
_CLUSTER_SUFFIXES: Final = (".svc", ".cluster.local")

ProbePort = Callable[[PortProbe], PortAnswer]
"""Returns what a port of the pod answers."""


class _Target(Struct, frozen=True, kw_only=True):
    """Where the attempts of a probe lead."""

    host: str
    """The host in URLs and messages."""
    port: int = 0
    """The port of the pod; 0 if the connection does not lead to the pod."""
    dial_error: str = ""
    """Why there is no connection to another host."""
    unknown: str = ""
    """What is not simulated about another host."""


def port_result(
    pod: ReadOnlyTree, container: ReadOnlyTree, probe: Probe, pod_ip: str, probe_port: ProbePort
) -> ProbeResult | str:
    """Return the result of an attempt; or what is not simulated, so that nobody knows it.

    `probe_port` returns the answers of the pod's ports. Raises `UnresolvedPort`.
    """
    spec = container[probe.value]
    action = probing.port_action(spec)
    port = probing.resolve_port(action["port"], container)
    target = _target_of(pod, ("grpc" not in spec and action.get("host")) or "", port, pod_ip)
    if target.unknown:
        return target.unknown
    if "httpGet" in spec:
        output = _get(action, target, port, probe_port, probing.probe_times(spec).timeout)
    else:
        answer = (
            PortAnswer(is_open=False)
            if target.dial_error
            else probe_port(
                PortProbe(port=target.port, service=(action.get("service") or "") if "grpc" in spec else "")
            )
        )
        if answer.unknown and ("grpc" in spec or not _has_connection(answer)):
            return answer.unknown
        address = join_host_port(target.host, port)
        if "tcpSocket" in spec:
            output = _Output("" if answer.is_open else target.dial_error or _refused(address))
        else:
            output = _Output(_grpc_problem(answer, address, probing.probe_times(spec).timeout))
    if output.unknown:
        return output.unknown
    if output.warning:
        return ProbeResult(message=probing.warning_message(probe, output.warning))
    if not output.problem:
        return SUCCESS
    return ProbeResult(is_success=False, message=probing.unhealthy_message(probe, output.problem))


def request_fails(
    pod: ReadOnlyTree, container: ReadOnlyTree, action: ReadOnlyTree, pod_ip: str, probe_port: ProbePort
) -> bool:
    """Return whether the request of a hook gets no response, as far as that is known; a hook accepts each status.

    It repeats a request over HTTPS to a server without TLS over HTTP. Raises `UnresolvedPort`.
    """
    port = probing.resolve_port(action["port"], container)
    target = _target_of(pod, action.get("host") or "", port, pod_ip)
    if target.unknown or target.dial_error:
        return bool(target.dial_error)
    path = action.get("path") or "/"
    answer = probe_port(PortProbe(port=target.port, path=f"/{path.removeprefix('/')}"))
    if answer.unknown:
        return False
    scheme = str(action.get("scheme") or "HTTP").lower()
    problem = _http_problem(answer, scheme, join_host_port(target.host, port))
    return problem not in ("", _HTTP_TO_HTTPS)


class _Output(Struct, frozen=True):
    """The end of an attempt: a success unless a field is set."""

    problem: str = ""
    warning: str = ""
    unknown: str = ""


def _has_connection(answer: PortAnswer) -> bool:
    """Return whether a connection is certainly made, whatever the server says then."""
    return answer.is_open and answer.is_listening


def _target_of(pod: ReadOnlyTree, host: str, port: int, pod_ip: str) -> _Target:
    """Return where a kubelet's connection to a host and a port leads; "" is the pod's address."""
    if not host or host == pod_ip:
        return _Target(host=pod_ip, port=port)
    uses_host = bool(pod["spec"].get("hostNetwork"))
    if host in _LOOPBACK:
        if uses_host:
            return _Target(host=host, port=port)
        mapped = next(
            (
                int(entry["containerPort"])
                for container in pod["spec"]["containers"]
                for entry in container.get("ports") or ()
                if entry.get("hostPort") == port
            ),
            0,
        )
        if mapped:
            return _Target(host=host, port=mapped)
        if port in _NODE_PORTS:
            return _Target(host=host, unknown=f"port {port} of the node")
        return _Target(host=host, dial_error=_refused(f"{_LOOPBACK[host]}:{port}"))
    if not is_address(host) and ("." not in host or host.rstrip(".").endswith(_CLUSTER_SUFFIXES)):
        # The kubelet resolves the host with the name server of its node, which has no names of the cluster.
        return _Target(host=host, dial_error=f"dial tcp: lookup {host}: no such host")
    return _Target(host=host, unknown=f"the host {host}")


def _refused(address: str) -> str:
    return f"dial tcp {address}: connect: connection refused"


# --- HTTP


def _get(action: ReadOnlyTree, target: _Target, port: int, probe_port: ProbePort, timeout: float) -> _Output:
    """Send a GET request, and follow redirects to the same host."""
    scheme = str(action.get("scheme") or "HTTP").lower()
    path = action.get("path") or "/"
    first = url = f"{scheme}://{join_host_port(target.host, port)}/{path.removeprefix('/')}"
    for _ in range(_MAX_REDIRECTS):
        parts = urlsplit(url)
        if target.dial_error:
            return _Output(f"Get {quote(first)}: {target.dial_error}")
        number = target.port if parts.port == port else _port_of(parts)
        query = f"?{parts.query}" if parts.query else ""
        answer = probe_port(PortProbe(port=number, path=f"{parts.path or '/'}{query}"))
        if answer.unknown:
            return _Output(unknown=answer.unknown)
        problem = _http_problem(answer, parts.scheme, join_host_port(target.host, _port_of(parts)))
        if not problem and answer.seconds > timeout:
            problem = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        if problem:
            return _Output(f"Get {quote(first)}: {problem}")
        status = answer.plain_status if answer.uses_tls and parts.scheme == "http" else answer.status
        if not 200 <= status < 400:
            return _Output(f"HTTP probe failed with statuscode: {status}")
        if status < 300 or not answer.location:
            return _Output()
        next_url = urljoin(url, answer.location)
        if urlsplit(next_url).hostname != parts.hostname:
            return _Output(warning=f"Probe terminated redirects, Response body: {answer.body[:_MAX_WARNING]}")
        url = next_url
    return _Output(f"Get {quote(first)}: stopped after {_MAX_REDIRECTS} redirects")


def _port_of(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _http_problem(answer: PortAnswer, scheme: str, address: str) -> str:
    """Return Go's message for a request without a response; "" if there is one."""
    if not answer.is_open:
        return _refused(address)
    speaks_http = answer.speaks == "http"
    if scheme == "https" and answer.uses_tls is False:
        if speaks_http:
            return _HTTP_TO_HTTPS
        return "tls: first record does not look like a TLS handshake" if answer.first_line else "EOF"
    if scheme == "http" and answer.uses_tls:
        return "" if speaks_http and answer.plain_status else "EOF"
    if speaks_http:
        return ""
    if answer.first_line:
        broken = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
        return f"{broken} {quote(answer.first_line)}"
    return "EOF"


# --- gRPC


def _grpc_problem(answer: PortAnswer, address: str, timeout: int) -> str:
    """Return what a kubelet reports of a call of Health/Check; "" if the service is healthy.

    A client connects again until its time is over, also to a server that does not speak HTTP/2.
    """
    if not answer.is_open or (answer.speaks != "grpc" and not answer.has_grpc_health):
        return f'timeout: failed to connect service "{address}" within {timeout}s: context deadline exceeded'
    if not answer.has_grpc_health:
        return (
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
            "unknown service grpc.health.v1.Health"
        )
    if answer.grpc_health is None:
        return "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
    return (
        ""
        if answer.grpc_health == "SERVING"
        else f"service unhealthy (responded with {quote(answer.grpc_health)})"
    )
