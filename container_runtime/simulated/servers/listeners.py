"""The ports on which the program of a container listens: those of its image's server, or those of its own command. Pure.

What is not simulated may listen on any port: nobody knows, and `Listeners.unknown` says what it is.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from posixpath import normpath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.table import (
    HTTP,
    Image,
    ImageTable,
    PortBehavior,
    has_subcommand,
)
from mockube.container_runtime.pod_script import runs_script, script_of
from mockube.container_runtime.simulated.programs.contexts import full_context
from mockube.container_runtime.simulated.programs.program import calls_of, is_pause_image
from mockube.container_runtime.simulated.shell.process import ProgramCall
from mockube.container_runtime.simulated.shell.programs.all_programs import INSTALLED_PROGRAMS, PROGRAMS
from mockube.container_runtime.simulated.shell.programs.installed_servers import PROGRAMS as NETWORK_SERVERS
from mockube.container_runtime.simulated.shell.programs.installed_servers import kind_of

from .running_servers import RunningServers
from .server_programs import DATAGRAM_SERVERS, SERVERS, Behaviors, port_number

_NUMBER: Final = re.compile(r"(?<![\w.])\d{2,5}(?![\w.])")


class Listeners(Struct, frozen=True, kw_only=True):
    """The ports on which a container's program listens."""

    ports: Behaviors = {}
    """What the program does on each port; None if nobody knows."""
    calls: Mapping[int, ProgramCall] = {}
    """The calls of the programs that listen on the ports; none for the server of an image without arguments."""
    unknown: str = ""
    """What may listen on other ports, such as an image that is not known; "" if nothing does."""
    possible: frozenset[int] = frozenset()
    """Ports that arguments or variables name, and on which it may listen."""
    datagrams: Mapping[str, Behaviors] | None = None
    """What it does on its ports of UDP and SCTP, by the protocol; None if nobody knows."""

    def begin(self, port: int) -> float:
        """Return the seconds after the start of a container at which it calls the program that listens on a port."""
        call = self.calls.get(port)
        return 0.0 if call is None else call.seconds

    def may_listen(self, port: int, protocol: str = "TCP") -> bool:
        """Return whether the program listens on a port, or may do so."""
        if protocol != "TCP":
            return self.datagrams is None or port in self.datagrams.get(protocol, {})
        return bool(self.unknown) or port in self.ports or port in self.possible


class _Key(Struct, frozen=True):
    """What determines the ports of a container."""

    image: str
    known: Image | None
    """What is known of the image."""
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str | None], ...]
    folder: str
    mounts: tuple[str, ...]


def listeners_of(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, servers: RunningServers | None = None
) -> Listeners:
    """Return the ports on which a container listens while it runs: of a command in real time those of the programs that it has
    called, which `servers` has; of one that is computed those of all that it calls.
    """
    if runs_script(pod, container):
        return Listeners(unknown="the script in an annotation")
    variables = container.get("env") or ()
    mounts = _mounts_with_content(images, pod, container)
    image = images.behavior_of(container)
    key = _Key(
        container.get("image") or "",
        image,
        tuple(container.get("command") or ()),
        tuple(container.get("args") or ()),
        tuple(
            (entry["name"], entry.get("value") if "valueFrom" not in entry else None) for entry in variables
        ),
        container.get("workingDir") or "",
        tuple(normpath(mount["mountPath"]) for mount in mounts),
    )
    calls = None if servers is None else servers.calls(pod, container["name"])
    if calls is not None:
        calls = [call for call in calls if not _is_configured(call, image)]
    elif _is_interpreted(key):
        calls = _computed_calls(images, images.version, _Same(pod), _Same(container))
    listeners = _listeners(key) if calls is None else _of_calls(calls, key)
    if container.get("envFrom") and not listeners.unknown and _reads_variables(image):
        return replace(listeners, unknown=f"the variables of the image {container.get('image')}")
    return listeners


def _is_configured(call: ProgramCall, image: Image | None) -> bool:
    """Return whether a program is the server of its image that answers by a configuration which it reads."""
    kind = None if image is None or image.is_guess else kind_of(image)
    return kind is not None and kind.has(call.argv)


class _Same:
    """An object that is never changed: as a key it is the same as itself alone, which costs no comparison of its contents."""

    def __init__(self, tree: ReadOnlyTree) -> None:
        self.tree = tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.tree is self.tree

    def __hash__(self) -> int:
        return id(self.tree)


@lru_cache(maxsize=64)
def _computed_calls(images: ImageTable, _version: int, pod: _Same, container: _Same) -> Sequence[ProgramCall]:
    """Return what a command calls as far as it is computed; one evaluation of a pod asks for it several times."""
    script = script_of(meta.annotations(pod.tree))
    return calls_of(images, container.tree, full_context(images, pod.tree, container.tree, script))


def _is_interpreted(key: _Key) -> bool:
    """Return whether a container runs a program that may call others, and that is no server itself."""
    program = next(iter(_words(key, key.known)), "").rpartition("/")[2]
    is_server = program in SERVERS or program in NETWORK_SERVERS or program in _READS_CONFIGURATION
    return program in PROGRAMS and not is_server and (key.known is None or program not in key.known.servers)


def _mounts_with_content(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree
) -> Sequence[ReadOnlyTree]:
    """Return the mounts of volumes that may bring files to a server, and so another configuration."""
    mounts: Sequence[ReadOnlyTree] = container.get("volumeMounts") or ()
    image = images.behavior_of(container)
    if not mounts or image is None or not image.restores_configuration:
        return mounts
    of_others = {
        mount["name"]
        for other in every_container(pod["spec"])
        if other.get("image") != container.get("image")
        for mount in other.get("volumeMounts") or ()
    }
    empty = {
        volume["name"] for volume in pod["spec"].get("volumes") or () if "emptyDir" in volume
    } - of_others
    return [mount for mount in mounts if mount["name"] not in empty]


def _reads_variables(image: Image | None) -> bool:
    return image is not None and any(behavior.variables for behavior in image.ports.values())


@lru_cache(maxsize=4096)
def _listeners(key: _Key) -> Listeners:
    """Return the ports of a command that is a server itself, or the server of its image."""
    image = key.known
    environment = dict(image.env) if image is not None else {}
    environment |= {name: value for name, value in key.environment if value is not None}
    words = _words(key, image)
    if not words:
        return _of_image(key, image, (), environment)
    folder = key.folder or (image.workdir if image is not None else "") or "/"
    return _of_calls([ProgramCall(tuple(expand_references(words, environment)), environment, folder)], key)


def _words(key: _Key, image: Image | None) -> tuple[str, ...]:
    """Return the command that a container runs; empty for the server of its image without arguments.

    The entrypoints of images give arguments that begin with a dash to the server.
    """
    if key.command:
        return (*key.command, *key.arguments)
    name = re.split(r"[:@]", key.image.rpartition("/")[2])[0]
    if image is not None and image.servers and has_subcommand(image, key.arguments):
        return (image.servers[0], *key.arguments)
    if image is not None and image.entrypoint:
        return (*image.entrypoint, *(key.arguments or image.arguments))
    if name in SERVERS and name not in PROGRAMS and (not key.arguments or key.arguments[0].startswith("-")):
        return (name, *key.arguments)
    return key.arguments or (image.arguments if image is not None else ())


_READS_CONFIGURATION: Final = frozenset({"coredns", "kube-proxy"})
"""The programs that read their configuration here, and whose ports for probes it does not change."""


def _of_image(
    key: _Key, image: Image | None, arguments: Sequence[str], environment: Mapping[str, str]
) -> Listeners:
    """Return the ports of the server of an image, whose arguments and variables may name others."""
    if image is None or not image.ports:
        has_no_server = image is not None and (image.exit_code is not None or image.reads_input)
        return (
            Listeners()
            if has_no_server or is_pause_image(key.image)
            else Listeners(unknown=f"the image {key.image}")
        )
    ports: dict[int, PortBehavior | None] = {}
    program = next(iter(arguments), "").rpartition("/")[2]
    for number, behavior in image.ports.items():
        if behavior.served_by and program not in behavior.served_by:
            continue
        at = _port_by_setting(behavior, arguments, environment) or number
        ports[at] = behavior if _has_answers(behavior, image) else None
    configured = [path for path in image.configuration if _overlaps(path, key.mounts)] or [
        argument for argument in arguments if argument.startswith("/") and _overlaps(argument, key.mounts)
    ]
    if configured and program not in _READS_CONFIGURATION:
        unknown = f"the configuration in {configured[0]} of the image {key.image}"
        return Listeners(ports=dict.fromkeys(ports), unknown=unknown)
    unknown = f"the image {key.image}" if image.listens or image.is_guess else ""
    text = "\0".join((*arguments, *(value for _, value in key.environment if value)))
    return Listeners(ports=ports, unknown=unknown, possible=frozenset(map(int, _NUMBER.findall(text))))


def _has_answers(behavior: PortBehavior, image: Image) -> bool:
    """Return whether something is known of the answers on a port."""
    if behavior.speaks != HTTP:
        return True
    is_known = behavior.routes or behavior.root or behavior.ingress or behavior.only_routes
    return bool(is_known) and not image.is_guess


def _port_by_setting(
    behavior: PortBehavior, arguments: Sequence[str], environment: Mapping[str, str]
) -> int | None:
    for index, argument in enumerate(arguments):
        name, separator, value = argument.partition("=")
        if name in behavior.options:
            return port_number(value if separator else next(iter(arguments[index + 1 :]), ""))
    return next((port_number(environment[name]) for name in behavior.variables if name in environment), None)


def overlaps(path: str, folder: str) -> bool:
    """Return whether one of two paths lies in the other."""
    return f"{folder}/".startswith(f"{path}/") or f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _overlaps(path: str, mounts: Sequence[str]) -> bool:
    return any(overlaps(path, mount) for mount in mounts)


# --- the programs that a command calls


def _of_calls(calls: Sequence[ProgramCall], key: _Key) -> Listeners:
    """Return the ports of all programs that a command calls, without those of servers whose configuration says it."""
    found: dict[int, PortBehavior | None] = {}
    by_port: dict[int, ProgramCall] = {}
    datagrams: dict[str, Behaviors] | None = None
    unknown, possible = "", frozenset[int]()
    for call in calls:
        listeners = _of_call(call, key)
        found |= listeners.ports
        by_port |= dict.fromkeys(listeners.ports, call)
        unknown, possible = unknown or listeners.unknown, possible | listeners.possible
        for protocol, ports in (listeners.datagrams or {}).items():
            datagrams = datagrams or {}
            datagrams[protocol] = {**datagrams.get(protocol, {}), **ports}
    return Listeners(ports=found, calls=by_port, unknown=unknown, possible=possible, datagrams=datagrams)


def _of_call(call: ProgramCall, key: _Key) -> Listeners:
    if call.ports is not None:
        return Listeners(ports=call.ports)
    image = key.known
    environment = {**(image.env if image is not None else {}), **call.environment}
    listeners = _of_simple_command(call.argv, key, image, environment, call.directory)
    is_reconfigured = image is not None and (
        call.is_reconfigured or any(path in word for word in call.argv for path in image.configuration)
    )
    if not is_reconfigured or not listeners.ports:
        return listeners
    return Listeners(
        ports=dict.fromkeys(listeners.ports), unknown=f"the configuration of the image {key.image}"
    )


def _of_simple_command(
    words: Sequence[str],
    key: _Key,
    image: Image | None,
    environment: Mapping[str, str],
    folder: str,
) -> Listeners:
    program, arguments = words[0].rpartition("/")[2], words[1:]
    if image is not None and image.ports and _is_server(program, words[0], key, image):
        return _of_image(key, image, words, environment)
    server = SERVERS.get(program)
    ports = server(arguments, environment, folder) if server is not None else None
    if ports is not None:
        datagrams = DATAGRAM_SERVERS.get(program)
        return Listeners(
            ports=ports, datagrams=None if datagrams is None else datagrams(arguments, environment)
        )
    is_own = program in PROGRAMS and program not in INSTALLED_PROGRAMS
    if is_own and program not in NETWORK_SERVERS and server is None:
        return Listeners()
    # Another program of an image with a server may be what starts it.
    ports = dict.fromkeys(image.ports) if image is not None and not image.entrypoint else {}
    is_argument = not key.command and words[0] == next(iter(key.arguments), "")
    unknown = f"the image {key.image}" if is_argument else f"{program} of the image {key.image}"
    return Listeners(ports=ports, unknown=unknown)


def _is_server(program: str, word: str, key: _Key, image: Image) -> bool:
    """Return whether the first word of a command is the server of the image, or an argument for it."""
    if program in image.servers or (image.entrypoint and word == image.entrypoint[0]):
        return program not in SERVERS or program in image.servers
    return not key.command and word.startswith("-")
