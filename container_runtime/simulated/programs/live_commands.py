"""The commands of probes and hooks that run in real time. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.variables import expand_probe_command

from .lasting_files import WRITE_COMMAND

_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_TO_NULL: Final = re.compile(r"\d?>{1,2} ?(?:/dev/null|&\d)")
"""Matches a redirection that writes no file."""
_SIGNAL: Final = re.compile(
    r"(?<![\w./-])(?:kill|pkill|killall)(?![\w./-])(?![ \0]+(?:-0|-s[ \0]*0|-l|-L)(?!\w))"
)
"""Matches a command that sends a signal; the signal 0 only asks whether a process runs."""
_NONE: Final[Mapping[str, tuple[str, ...]]] = {}


def _has_commands(container: ReadOnlyTree) -> bool:
    hooks = container.get("lifecycle")
    handlers = [container[probe] for probe in _PROBES if probe in container]
    if hooks:
        handlers += hooks.values()
    return bool(handlers) and any(isinstance(handler, Mapping) and "exec" in handler for handler in handlers)


def live_commands(
    container: ReadOnlyTree,
    runs_on_clock: Callable[[tuple[str, ...]], bool],
    *,
    is_live: bool = False,
) -> Mapping[str, tuple[str, ...]]:
    """Return the commands of a container's probes and hooks that run in real time, by the field of each.

    All of them do if the container's own command does (`is_live`), if a client has changed its files, or if one of them may change these or send signals.
    """
    if not _has_commands(container):
        return _NONE
    commands = _commands_of(container)
    if is_live or _may_interfere(commands):
        return commands
    return {field: argv for field, argv in commands.items() if runs_on_clock(argv)}


def _commands_of(container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
    hooks = container.get("lifecycle")
    handlers = {field: handler for field in _PROBES if (handler := container.get(field))} | (hooks or {})
    return {
        field: _command_of(field, handler["exec"], container)
        for field, handler in handlers.items()
        if isinstance(handler, Mapping) and "exec" in handler
    }


def handlers_may_interfere(container: ReadOnlyTree) -> bool:
    """Return whether a command of a container's probes or hooks may write files that others read, or send signals."""
    return _has_commands(container) and _may_interfere(_commands_of(container))


def _may_interfere(commands: Mapping[str, tuple[str, ...]]) -> bool:
    return any(
        WRITE_COMMAND.search(_TO_NULL.sub("", "\0".join(argv))) or sends_signals(argv)
        for argv in commands.values()
    )


def sends_signals(argv: tuple[str, ...]) -> bool:
    """Return whether a command may send a signal to a process that it has not started."""
    return _SIGNAL.search("\0".join(argv)) is not None


def _command_of(field: str, action: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    argv = action.get("command") or ()
    return expand_probe_command(argv, container) if field in _PROBES else tuple(argv)
