"""The ports of this machine on which a container's process listens, in place of the ports of its container."""

import socket
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree

from .images import LocalImage

PORT_VARIABLE: Final = "MOCKUBE_PORT_"


class ChosenPorts(NamedTuple):
    """The port of this machine for each port of a container, and what is wrong with them."""

    ports: Mapping[int, int]
    problems: Sequence[str]


def choose_ports(container: ReadOnlyTree, image: LocalImage) -> ChosenPorts:
    """Return a free port, or that of the map, for each port of a container.

    A port that another program has is replaced if the command names its variable.
    """
    ports, problems = {}, []
    for port, local_port in local_ports(container, image).items():
        ports[port] = local_port or _free_port()
        if local_port and _is_taken(local_port):
            variable = f"{PORT_VARIABLE}{port}"
            if _names_variable(container, image, variable):
                ports[port] = _free_port()
                solution = f"the container has {ports[port]} in its place, by ${variable}"
            else:
                solution = f"name $({variable}) in the command or its variables for another one"
            problems.append(f"port {local_port} of this machine is taken: {solution}")
    return ChosenPorts(ports, problems)


def own_ports(container: ReadOnlyTree, image: LocalImage) -> dict[int, int]:
    """Return the port on which a container with a network of its own listens, for each of its ports."""
    return {port: local_port or port for port, local_port in local_ports(container, image).items()}


def local_ports(container: ReadOnlyTree, image: LocalImage) -> dict[int, int]:
    """Return the port of this machine for each port of a container; 0 for a free port that is chosen later."""
    declared = [
        port["containerPort"]
        for port in container.get("ports") or ()
        if (port.get("protocol") or "TCP") == "TCP"
    ]
    return {port: port for port in declared} | dict(image.ports)


def _names_variable(container: ReadOnlyTree, image: LocalImage, variable: str) -> bool:
    """Return whether a container's command, arguments or variables name a variable."""
    texts = [
        *(image.command or container.get("command") or ()),
        *(container.get("args") or image.args),
        *image.env.values(),
        *(entry.get("value") or "" for entry in container.get("env") or ()),
    ]
    return any(variable in text for text in texts)


def _is_taken(port: int) -> bool:
    """Return whether another program listens on a port. A port that this process must not use counts as free."""
    try:
        with socket.create_server(("", port)):
            return False
    except PermissionError:
        return False
    except OSError:
        return True


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
