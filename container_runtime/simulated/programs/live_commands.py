"""The commands of probes and hooks that run in real time, because they use the network, API objects, the time,
or files that others write. Pure.
"""

import re
from collections.abc import Mapping
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.variables import expand_probe_command

from .commands import live_command, mentions_network
from .lasting_files import uses_lasting_files
from .object_values import uses_objects

_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
WRITE_COMMAND: Final = re.compile(
    r">|\b(?:tee|touch|mkdir|cp|mv|rm|tar|ln|sed|dd|chmod|mounttest|apt|apt-get|apk|yum|dnf|microdnf)\b"
)
"""Matches a command that may write files."""
_TIME: Final = re.compile(r"(?<![\w./-])date(?![\w./-])|\bEPOCHSECONDS\b|-[acm]min\b")
"""Matches a command that reads the time."""
_NONE: Final[Mapping[str, tuple[str, ...]]] = {}


def _has_commands(container: ReadOnlyTree) -> bool:
    hooks = container.get("lifecycle")
    handlers = [container[probe] for probe in _PROBES if probe in container]
    if hooks:
        handlers += hooks.values()
    return bool(handlers) and any(isinstance(handler, Mapping) and "exec" in handler for handler in handlers)


def live_commands(
    pod: ReadOnlyTree, container: ReadOnlyTree, *, has_changed_files: bool = False
) -> Mapping[str, tuple[str, ...]]:
    """Return the commands of a container's probes and hooks that run in real time, by the field of each.

    All of them do if the container's own command does, or if a client has changed files of the container (`has_changed_files`).
    """
    if not _has_commands(container):
        return _NONE
    hooks = container.get("lifecycle")
    handlers = {field: handler for field in _PROBES if (handler := container.get(field))} | (hooks or {})
    commands = {
        field: _command_of(field, handler["exec"], container)
        for field, handler in handlers.items()
        if isinstance(handler, Mapping) and "exec" in handler
    }
    if has_changed_files or live_command(pod, container):
        return commands
    if WRITE_COMMAND.search("\0".join(commands.get("postStart", ()))) and len(commands) > 1:
        return commands
    return {
        field: argv
        for field, argv in commands.items()
        if mentions_network(argv)
        or uses_objects(pod, container, argv)
        or uses_lasting_files(pod, container, argv)
        or _reads_time(argv)
    }


def _command_of(field: str, action: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    argv = action.get("command") or ()
    return expand_probe_command(argv, container) if field in _PROBES else tuple(argv)


def _reads_time(argv: tuple[str, ...]) -> bool:
    """Return whether the result of a command may change as time passes."""
    return any(_TIME.search(argument) for argument in argv)
