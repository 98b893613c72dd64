"""The ports on which the program of a container listens: those of its image's server, or those of its own command. Pure.

What is not simulated may listen on any port: nobody knows, and `Listeners.unknown` says what it is.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from posixpath import join, normpath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import (
    HTTP,
    Image,
    ImageTable,
    PortBehavior,
    has_subcommand,
)
from mockube.container_runtime.pod_script import runs_script
from mockube.container_runtime.simulated.programs.program import is_pause_image
from mockube.container_runtime.simulated.programs.script_commands import is_script, simple_commands
from mockube.container_runtime.simulated.shell.command_lookup import SHELL_WORDS
from mockube.container_runtime.simulated.shell.network_programs.servers.registry import (
    PROGRAMS as NETWORK_SERVERS,
)
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS

from .server_programs import DATAGRAM_SERVERS, SERVERS, Behaviors, port_number

_REFERENCE: Final = re.compile(r"\$\((\w+)\)|\$\{(\w+)(?::?-([^}$]*))?\}|\$(\w+)")
_NUMBER: Final = re.compile(r"(?<![\w.])\d{2,5}(?![\w.])")
_EVALUATED: Final = frozenset({"eval", ".", "source"})
"""The builtins that run what nobody reads here."""


class Listeners(Struct, frozen=True, kw_only=True):
    """The ports on which a container's program listens."""

    ports: Behaviors = {}
    """What the program does on each port; None if nobody knows."""
    programs: Mapping[int, str] = {}
    """The programs in a script that listen on a port once they are called."""
    unknown: str = ""
    """What may listen on other ports, such as an image that is not known; "" if nothing does."""
    possible: frozenset[int] = frozenset()
    """Ports that arguments or variables name, and on which it may listen."""
    datagrams: Mapping[str, Behaviors] | None = None
    """What it does on its ports of UDP and SCTP, by the protocol; None if nobody knows."""

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


def listeners_of(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> Listeners:
    """Return the ports on which a container listens while it runs."""
    if runs_script(pod, container):
        return Listeners(unknown="the script in an annotation")
    variables = container.get("env") or ()
    mounts = _mounts_with_content(images, pod, container)
    listeners = _listeners(
        _Key(
            container.get("image") or "",
            images.behavior_of(container),
            tuple(container.get("command") or ()),
            tuple(container.get("args") or ()),
            tuple(
                (entry["name"], entry.get("value") if "valueFrom" not in entry else None)
                for entry in variables
            ),
            container.get("workingDir") or "",
            tuple(normpath(mount["mountPath"]) for mount in mounts),
        )
    )
    if container.get("envFrom") and not listeners.unknown and _reads_variables(images.behavior_of(container)):
        return replace(listeners, unknown=f"the variables of the image {container.get('image')}")
    return listeners


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
    image = key.known
    environment = dict(image.env) if image is not None else {}
    environment |= {name: value for name, value in key.environment if value is not None}
    words = _words(key, image)
    if not words:
        return _of_image(key, image, (), environment)
    return _of_command([_expand(word, environment) for word in words], key, image, environment)


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


# --- a command of the pod


def _of_command(
    words: Sequence[str], key: _Key, image: Image | None, environment: Mapping[str, str]
) -> Listeners:
    """Return the ports of all programs that a command runs, in a script of a shell, too."""
    found: dict[int, PortBehavior | None] = {}
    programs: dict[int, str] = {}
    has_script = is_script(words)
    datagrams: dict[str, Behaviors] | None = None
    unknown, possible = "", frozenset[int]()
    folder = key.folder or (image.workdir if image is not None else "") or "/"
    for command in simple_commands(words):
        if command and command[0] == "cd":
            folder = normpath(join(folder, next(iter(command[1:]), "/root")))
        listeners = _of_simple_command(command, key, image, environment, folder)
        found |= listeners.ports
        if has_script and command:
            programs |= dict.fromkeys(listeners.ports, command[0].rpartition("/")[2])
        unknown, possible = unknown or listeners.unknown, possible | listeners.possible
        for protocol, ports in (listeners.datagrams or {}).items():
            datagrams = datagrams or {}
            datagrams[protocol] = {**datagrams.get(protocol, {}), **ports}
    script = "\0".join(words)
    if image is not None and any(path in script for path in image.configuration):
        return Listeners(ports=dict.fromkeys(found), unknown=f"the configuration of the image {key.image}")
    return Listeners(ports=found, programs=programs, unknown=unknown, possible=possible, datagrams=datagrams)


def _of_simple_command(
    words: Sequence[str],
    key: _Key,
    image: Image | None,
    environment: Mapping[str, str],
    folder: str,
) -> Listeners:
    if not words:
        return Listeners()
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
    is_quiet = program in SHELL_WORDS and program not in _EVALUATED
    is_client = program in PROGRAMS and program not in NETWORK_SERVERS and server is None
    if is_quiet or is_client or program.startswith("#"):
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


def _expand(word: str, environment: Mapping[str, str]) -> str:
    """Return a word with the variables that have known values, in the syntaxes of Kubernetes and of shells."""
    if "$" not in word:
        return word

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[4]
        return environment.get(name, match[3] if match[3] is not None else match[0])

    return _REFERENCE.sub(value, word)
