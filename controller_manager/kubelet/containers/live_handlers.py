"""The commands of probes and hooks that run in real time, because they use the network. Pure."""

from collections.abc import Mapping
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.runs import mentions_network

_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_NONE: Final[Mapping[str, tuple[str, ...]]] = {}


def live_commands(container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
    """Return the commands of a container's probes and hooks that run in real time, by the field of each."""
    hooks = container.get("lifecycle")
    if not hooks and not any(probe in container for probe in _PROBES):
        return _NONE
    handlers = {field: handler for field in _PROBES if (handler := container.get(field))} | (hooks or {})
    return {
        field: argv
        for field, handler in handlers.items()
        if isinstance(handler, Mapping)
        and "exec" in handler
        and mentions_network(argv := tuple(handler["exec"].get("command") or ()))
    }
