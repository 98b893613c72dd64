"""An attempt of a probe at a port of a pod, and what a run-time knows of the server that answers it."""

from typing import Final

from msgspec import Struct

from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree

USER_AGENT: Final = f"kube-probe/{minors.NEWEST}"
"""The client that a kubelet names in the requests of probes."""


class PortProbe(Struct, frozen=True, kw_only=True):
    """What a kubelet sends to a port of a pod: a GET request, a gRPC call, or nothing after the connection."""

    port: int
    path: str | None = None
    """The path of an HTTP request; None for another protocol."""
    service: str = ""
    """The service whose health a gRPC client asks for."""


class PortAnswer(Struct, frozen=True, kw_only=True):
    """What the server on a port answers, as far as a kubelet reads it."""

    is_open: bool = True
    is_listening: bool = True
    """Whether a program certainly listens on an open port, also where its answers are not known."""
    unknown: str = ""
    """What is not simulated, so that nobody knows the answer; "" if the rest is known."""
    speaks: str = "http"
    uses_tls: bool | None = False
    """Whether clients need TLS; None if it takes both."""
    status: int = 200
    location: str = ""
    """The target of a redirect."""
    body: str = ""
    plain_status: int = 400
    """The status with which a server with TLS answers a request without; 0 if it closes the connection."""
    first_line: str = ""
    """The first line that a server of another protocol sends."""
    seconds: float = 0.0
    """How long the server takes for an HTTP response."""
    has_grpc_health: bool = False
    grpc_health: str | None = None
    """The status of the service; None if the server does not have it."""


REFUSED: Final = PortAnswer(is_open=False)


def port_number(container: ReadOnlyTree, value: int | str) -> int | None:
    """Return the number of a port of a container, which may be a name; None if it declares none of the name."""
    if isinstance(value, int):
        return value
    ports = (port for port in container.get("ports") or () if port.get("name") == value)
    return next((int(port["containerPort"]) for port in ports), None)
