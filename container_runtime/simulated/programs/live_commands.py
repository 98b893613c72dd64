"""The commands of probes and hooks, and which of them run in real time. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.variables import expand_probe_command

from .handlers import HandlerOutcome

_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
Commands = Mapping[str, tuple[str, ...]]
"""The commands of a container's probes and hooks by the field of each."""
_NONE: Final[Commands] = {}


def handler_commands(container: ReadOnlyTree) -> Commands:
    hooks = container.get("lifecycle") or _NONE
    handlers = {field: container[field] for field in _PROBES if container.get(field)} | {**hooks}
    if not handlers:
        return _NONE
    return {
        field: _command_of(field, handler["exec"], container)
        for field, handler in handlers.items()
        if isinstance(handler, Mapping) and "exec" in handler
    }


def live_commands(
    commands: Commands, outcome_of: Callable[[tuple[str, ...]], HandlerOutcome], *, is_live: bool = False
) -> Commands:
    """Return the commands of a container's probes and hooks that run in real time.

    All of them do if the container's own command does (`is_live`), if a client has changed its files, or if one of them may change these or send signals.
    """
    if is_live or not commands:
        return commands
    outcomes = {field: outcome_of(argv) for field, argv in commands.items()}
    if any(outcome.interferes for outcome in outcomes.values()):
        return commands
    return {field: argv for field, argv in commands.items() if outcomes[field].timeline is None}


def _command_of(field: str, action: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    argv = action.get("command") or ()
    return expand_probe_command(argv, container) if field in _PROBES else tuple(argv)
