"""The variables and files of a container whose values are those of API objects: ConfigMaps, Secrets, Services, tokens, the pod's status. Pure.

They are read when the container starts, so what a command does that uses one of them is not known before.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.variables import reference_names
from mockube.container_runtime.config.volumes import api_volume_names
from mockube.container_runtime.simulated.files.mounts import SERVICE_ACCOUNT_PATH
from mockube.container_runtime.simulated.shell.outside import OutsideAnswer, ValueAsked

_SERVICE_VARIABLE: Final = re.compile(
    r"_(?:SERVICE_HOST|SERVICE_PORT|SERVICE_PORT_\w{1,15}|PORT(?:_\d{1,5}_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$"
)
_KNOWN_NAMES: Final = frozenset(
    {"PATH", "HOSTNAME", "HOME", "PWD", "OLDPWD", "IFS", "RANDOM", "UID", "EUID", "PPID", "SHELL", "USER"}
)
"""The variables that every container or every shell has."""


class ObjectVariables(NamedTuple):
    """The variables of a container that may have values of API objects."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    """The beginnings of the names that are keys of objects."""
    has_links: bool = True
    """Whether there are variables for all Services, and not only for the API server."""
    left_out: frozenset[str] = frozenset()
    """The variables with known values that equal commands do not share, so that they are left out until one asks for them."""

    def may_have(self, name: str) -> bool:
        if name in self.names:
            return True
        if name in _KNOWN_NAMES:
            return False
        is_link = self.has_links or name.startswith("KUBERNETES_")
        return name.startswith(self.prefixes) or (is_link and _SERVICE_VARIABLE.search(name) is not None)

    def ask(self, name: str) -> None:
        """Raise `OutsideAnswer` if a variable that is not known may have a value, or some may if the name is empty."""
        if name in self.left_out:
            raise ValueAsked(name)
        if not name or self.may_have(name):
            raise OutsideAnswer(name)


def object_variables(pod: ReadOnlyTree, container: ReadOnlyTree) -> ObjectVariables:
    prefixes = tuple({source.get("prefix") or "": None for source in container.get("envFrom") or ()})
    has_links = pod["spec"].get("enableServiceLinks") is not False
    names: set[str] = set()
    for entry in container.get("env") or ():
        source = entry.get("valueFrom")
        names.discard(entry["name"])
        if (
            _is_object_value(source)
            if source
            else _refers(entry.get("value"), ObjectVariables(frozenset(names), prefixes, has_links).may_have)
        ):
            names.add(entry["name"])
    return ObjectVariables(frozenset(names), prefixes, has_links)


def _refers(value: str | None, may_have: Callable[[str], bool]) -> bool:
    return value is not None and "$(" in value and any(map(may_have, reference_names(value)))


def _is_object_value(source: ReadOnlyTree) -> bool:
    field = source.get("fieldRef")
    return field is None or field["fieldPath"].startswith("status.")


def is_file_of_object(pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether the program of a command is a file of an API object, such as a script of a ConfigMap."""
    return bool(argv) and any(f"{argv[0]}/".startswith(f"{path}/") for path in _api_mounts(pod, container))


def has_object_files(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a container has files of API objects, besides those of its ServiceAccount, which nearly every container has."""
    return any(path != SERVICE_ACCOUNT_PATH for path in _api_mounts(pod, container))


def _api_mounts(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[str]:
    """Yield the mount paths of the volumes whose files come from API objects."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return
    names = api_volume_names(pod)
    for mount in mounts:
        if mount["name"] in names:
            yield mount["mountPath"].rstrip("/") or "/"
