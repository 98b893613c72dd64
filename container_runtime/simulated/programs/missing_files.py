"""Servers and interpreters whose command names a file that certainly does not exist: what they say, and how they end. Pure.

A file of an image that is not known, or of a volume into which programs write, may exist.
"""

import re
from collections.abc import Mapping, Sequence
from posixpath import join, normpath
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.variables import expand_references, may_be_defined
from mockube.container_runtime.config.volumes import (
    is_fixed,
    mounted_volumes,
    volume_content,
    volume_kind,
)
from mockube.container_runtime.images.table import (
    Image,
    ImageTable,
    Requirement,
    without_entrypoint,
)

_OBJECTS: Final = frozenset({"configMap", "secret"})
_SYSTEM: Final = (
    "/bin/",
    "/dev/",
    "/etc/",
    "/home/",
    "/lib",
    "/opt/",
    "/proc/",
    "/root/",
    "/run/",
    "/sbin/",
    "/sys/",
    "/usr/",
    "/var/",
)
"""Where an image may have files of which the table says nothing."""


class _NamedFile(Struct, frozen=True, kw_only=True):
    """The file that a program needs, by its command line, and what it says without."""

    option: str = ""
    """The options whose value it is, with commas; "" for the first argument, the script of an interpreter."""
    after: str = ""
    """The argument behind which the script is."""
    logs: tuple[str, ...]
    exit_code: int = 1
    present: tuple[str, ...] | None = None
    """The files that its image has for it; None if nobody knows them all."""


_NODE: Final = (
    "node:internal/modules/cjs/loader:1228",
    "  throw err;",
    "  ^",
    "",
    "Error: Cannot find module '$(path)'",
    "    at node:internal/main/run_main_module:36:49 {",
    "  code: 'MODULE_NOT_FOUND',",
    "  requireStack: []",
    "}",
)
_PROGRAMS: Final[Mapping[str, _NamedFile]] = {
    "node": _NamedFile(logs=_NODE),
    "java": _NamedFile(after="-jar", logs=("Error: Unable to access jarfile $(name)",)),
    "php": _NamedFile(logs=("Could not open input file: $(name)",)),
    "ruby": _NamedFile(logs=("ruby: No such file or directory -- $(name) (LoadError)",)),
    "perl": _NamedFile(logs=('Can\'t open perl script "$(name)": No such file or directory',), exit_code=2),
    "python": _NamedFile(
        logs=("python: can't open file '$(path)': [Errno 2] No such file or directory",), exit_code=2
    ),
    "python3": _NamedFile(
        logs=("python3: can't open file '$(path)': [Errno 2] No such file or directory",), exit_code=2
    ),
    "prometheus": _NamedFile(
        option="--config.file",
        logs=(
            'level=error msg="Error loading config (--config.file=$(name))" file=$(path) err="open $(path): no such file or directory"',
        ),
        exit_code=2,
        present=("/etc/prometheus/prometheus.yml", "/opt/bitnami/prometheus/conf/prometheus.yml"),
    ),
    "alertmanager": _NamedFile(
        option="--config.file",
        logs=(
            'level=error component=configuration msg="Loading configuration file failed" file=$(path) err="open $(path): no such file or directory"',
        ),
        present=("/etc/alertmanager/alertmanager.yml", "/opt/bitnami/alertmanager/conf/config.yml"),
    ),
    "redis-server": _NamedFile(
        logs=("Fatal error, can't open config file '$(path)': No such file or directory",),
        present=(),
    ),
    "valkey-server": _NamedFile(
        logs=("Fatal error, can't open config file '$(path)': No such file or directory",),
        present=(),
    ),
    "mongod": _NamedFile(
        option="--config,-f",
        logs=(
            "Error opening config file '$(name)': No such file or directory",
            "try 'mongod --help' for more information",
        ),
        exit_code=2,
        present=("/etc/mongod.conf.orig", "/etc/mongo/mongod.conf", "/etc/mongod.conf"),
    ),
    "mysqld": _NamedFile(
        option="--defaults-file",
        logs=(
            "mysqld: [ERROR] Could not open required defaults file: $(name)",
            "mysqld: [ERROR] Fatal error in defaults handling. Program aborted!",
        ),
    ),
    "postgres": _NamedFile(
        option="config_file",
        logs=(
            'postgres: could not access the server configuration file "$(name)": No such file or directory',
        ),
        exit_code=2,
    ),
    "loki": _NamedFile(
        option="-config.file,--config.file",
        logs=("failed parsing config: open $(name): no such file or directory",),
        present=("/etc/loki/local-config.yaml", "/etc/loki/config.yaml"),
    ),
    "vault": _NamedFile(
        option="-config,--config",
        logs=("error loading configuration from $(name): stat $(name): no such file or directory",),
    ),
    "nats-server": _NamedFile(
        option="--config,-c",
        logs=("nats-server: open $(name): no such file or directory",),
        present=("/nats-server.conf", "/etc/nats/nats-server.conf"),
    ),
}
_CERTIFICATES: Final = (
    "/etc/ssl/",
    "/etc/pki/",
    "/dev/",
    "/proc/",
    "/sys/",
    "/var/run/secrets/kubernetes.io/",
    "/run/secrets/kubernetes.io/",
)
"""Where each container, or nearly each image, has files."""
_SUBCOMMANDS: Final = frozenset({"server"})
"""The words for which the entrypoint of an image runs its server."""
_PLACEHOLDER: Final = re.compile(r"\$\((path|name)\)")


def names_needed_file(images: ImageTable, container: ReadOnlyTree) -> bool:
    """Return whether a container's command names a file that its program needs."""
    image = images.behavior_of(container)
    return image is not None and not image.is_guess and _named_file(container, image, {}) is not None


def missing_file(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Requirement | None:
    """Return what the program of a container says of a file that does not exist; None if it exists, or may do so."""
    image = images.behavior_of(container)
    if image is None or image.is_guess:
        return None
    named = _named_file(container, image, environment_of(pod, container, references))
    if named is None:
        return None
    needed, name = named
    if may_be_defined(name, container):
        return None
    path = normpath(join(container.get("workingDir") or image.workdir or "/", name))
    mounted = _is_mounted(path, pod, container, references)
    if mounted or (mounted is None and _may_be_of_image(path, image, needed.present)):
        return None
    values = {"path": path, "name": name}
    logs = tuple(_PLACEHOLDER.sub(lambda match: values[match[1]], line) for line in needed.logs)
    return Requirement(one_of=(), logs=logs, exit_code=needed.exit_code)


def may_be_absent(path: str, image: Image, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether nobody knows that a container has a file: neither a volume nor what is known of the image has it."""
    path = normpath(path)
    is_known = path in image.files or path in image.links or path.startswith(_CERTIFICATES)
    program = next(iter(image.servers), "")
    is_known |= program in _PROGRAMS and path in (_PROGRAMS[program].present or ())
    return not is_known and not _is_mounted(path, pod, container, References())


def is_absent(path: str, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> bool:
    """Return whether no volume of a container has a file at a path, which is none of a device."""
    return not path.startswith("/dev/") and not _is_mounted(path, pod, container, references)


def _named_file(
    container: ReadOnlyTree, image: Image, environment: Mapping[str, str]
) -> tuple[_NamedFile, str] | None:
    command, arguments = without_entrypoint(container, image)
    argv = expand_references((*command, *arguments), environment)
    if not argv:
        return None
    if not command and (argv[0].startswith("-") or argv[0] in _SUBCOMMANDS):
        argv = [next(iter(image.servers), image.names[0].rpartition("/")[2]), *argv]
    needed = _PROGRAMS.get(argv[0].rpartition("/")[2])
    if needed is None:
        return None
    name = (
        _value_of(argv[1:], needed.option.split(",")) if needed.option else _script_of(argv[1:], needed.after)
    )
    return (needed, name) if name and not name.startswith("-") else None


def _script_of(arguments: Sequence[str], after: str) -> str:
    """Return the first argument, or the one behind an option; "" if options come before it, which may mean anything."""
    if after:
        return next((arguments[index + 1] for index, each in enumerate(arguments[:-1]) if each == after), "")
    return arguments[0] if arguments and arguments[0] not in ("run", "inspect", "test", ".") else ""


def _value_of(arguments: Sequence[str], options: Sequence[str]) -> str:
    """Return the value of the first of some options, which is behind it or is the next argument; "" if there is none."""
    for index, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option in options and bool(equals) is bool(value):
            return value or next(iter(arguments[index + 1 :]), "")
    return ""


def _is_mounted(path: str, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> bool | None:
    """Return whether a volume has, or may have, a file at a path; None if no volume is mounted there."""
    volumes = {volume["name"]: volume for volume in mounted_volumes(pod, container)}
    mounts = sorted(container.get("volumeMounts") or (), key=lambda mount: -len(mount["mountPath"]))
    for mount in mounts:
        folder = normpath(mount["mountPath"])
        if path != folder and not path.startswith(f"{folder}/"):
            continue
        volume = volumes.get(mount["name"])
        if volume is None or path == folder or is_fixed(mount) or volume_kind(volume) not in _OBJECTS:
            return True
        content = volume_content(volume, pod, container, references)
        return not content or path.removeprefix(f"{folder}/") in content
    return None


def _may_be_of_image(path: str, image: Image, present: Sequence[str] | None) -> bool:
    if path in image.files or path in image.links:
        return True
    if present is not None:
        return path in present
    folders = (*image.configuration, *image.volumes, *filter(None, (image.workdir,)))
    return f"{path}/".startswith((*_SYSTEM, *(f"{folder}/" for folder in folders)))
