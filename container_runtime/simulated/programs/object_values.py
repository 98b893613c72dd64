"""The commands that use the values of API objects: ConfigMaps, Secrets, Services, tokens, and the pod's own status. Pure.

What such a command does is known once its container starts, when these objects are read.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.volumes import api_volume_names

_VARIABLE: Final = re.compile(r"\$(?:\{?[#!]?([A-Za-z_]\w*)|\(([A-Za-z_]\w*)\))")
"""A variable of a shell, or one that a kubelet expands."""
_ASSIGNMENT: Final = re.compile(
    r"\b(\w+)=|\bfor\s+(\w+)|\bread\s+(?:-\w+\s+){0,4}(\w+)|\bgetopts\s+\S+\s+(\w+)"
)
"""At most four options of `read`, so that the search is linear."""
_LISTS_VARIABLES: Final = re.compile(r"(?<![\w./-])(?:env|printenv)(?![\w./-])")
_READS_ENVIRONMENT: Final = re.compile(r"\b(?:environ|getenv)\b")
"""What reads variables in Python, whose names may be computed."""
_SERVICE_VARIABLE: Final = re.compile(
    r"_(?:SERVICE_HOST|SERVICE_PORT|SERVICE_PORT_\w{1,15}|PORT(?:_\d{1,5}_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$"
)
_GOES_ON: Final = re.compile(r"/?[\w.-]")
"""Matches what follows a folder's path that names a file in it, or another folder."""
_RESOLVER_FILE: Final = "/etc/resolv.conf"
"""Names the server of the cluster, whose address depends on the range of Services."""
_KNOWN_NAMES: Final = frozenset(
    {"PATH", "HOSTNAME", "HOME", "PWD", "OLDPWD", "IFS", "RANDOM", "UID", "EUID", "PPID", "SHELL", "USER"}
)
"""The variables that every container or every shell has."""


class _CommandVariables:
    """The names of the variables that a command reads and does not set itself."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        text = "\0".join(argv)
        names = {name for match in _VARIABLE.finditer(text) for name in match.groups() if name}
        assigned = {name for match in _ASSIGNMENT.finditer(text) for name in match.groups() if name}
        self.text = text
        self.all = frozenset(names)
        self.unset = frozenset(names - assigned - _KNOWN_NAMES)
        self.lists_all = _LISTS_VARIABLES.search(text) is not None
        self.reads_environment = _READS_ENVIRONMENT.search(text) is not None


_variables_of: Final = lru_cache(maxsize=4096)(_CommandVariables)


def uses_objects(pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether a command of the container reads variables or files whose values are not in the specification of the pod."""
    if not argv:
        return False
    command = _variables_of(argv)
    if _RESOLVER_FILE in command.text:
        return True
    if command.reads_environment and (_names_of_object_values(container) or container.get("envFrom")):
        return True
    if (command.all or command.lists_all) and _uses_variables(pod, container, command):
        return True
    paths = tuple(_api_mounts(pod, container))
    if not paths:
        return False
    values = (entry.get("value") or "" for entry in container.get("env") or ())
    return _names_path(paths, (command.text, container.get("workingDir") or "", *values))


@lru_cache(maxsize=4096)
def _names_path(paths: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    """Return whether a text names one of the paths, or a folder above one, whose files a command may list or search."""
    if any(path in text for path in paths for text in texts):
        return True
    parents = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"/"}
    return any(_names_folder(parent, text) for parent in parents for text in texts)


def _names_folder(path: str, text: str) -> bool:
    begin = text.find(path)
    while begin >= 0:
        end = begin + len(path)
        if _GOES_ON.match(text, end) is None:
            return True
        begin = text.find(path, end)
    return False


def is_file_of_object(pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether the program of a command is a file of an API object, such as a script of a ConfigMap."""
    return bool(argv) and any(f"{argv[0]}/".startswith(f"{path}/") for path in _api_mounts(pod, container))


def _uses_variables(pod: ReadOnlyTree, container: ReadOnlyTree, command: _CommandVariables) -> bool:
    names = _names_of_object_values(container)
    sources = container.get("envFrom") or ()
    if command.lists_all and (names or sources):
        return True
    if names & command.all:
        return True
    unset = command.unset - {entry["name"] for entry in container.get("env") or ()}
    prefixes = tuple(source.get("prefix") or "" for source in sources)
    if prefixes and any(name.startswith(prefixes) for name in unset):
        return True
    has_links = pod["spec"].get("enableServiceLinks") is not False
    return any(
        _SERVICE_VARIABLE.search(name) and (has_links or name.startswith("KUBERNETES_")) for name in unset
    )


def _names_of_object_values(container: ReadOnlyTree) -> set[str]:
    """Return the names of the variables from other objects or the pod's status, and of those into which they are expanded."""
    names: set[str] = set()
    for entry in container.get("env") or ():
        source, value = entry.get("valueFrom"), entry.get("value")
        is_unknown = (
            _is_object_value(source)
            if source
            else bool(value) and any(f"$({name})" in value for name in names)
        )
        if is_unknown:
            names.add(entry["name"])
    return names


def _is_object_value(source: ReadOnlyTree) -> bool:
    field = source.get("fieldRef")
    return field is None or field["fieldPath"].startswith("status.")


def _api_mounts(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[str]:
    """Yield the mount paths of the volumes whose files come from API objects."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return
    names = api_volume_names(pod)
    for mount in mounts:
        if mount["name"] in names:
            yield mount["mountPath"].rstrip("/") or "/"
