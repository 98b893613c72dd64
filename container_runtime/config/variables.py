"""The references $(NAME) in commands, arguments and variables. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def expand_references(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Replace $(NAME) as a kubelet does: unknown names are left unchanged, such as scripts, and $$ elsewhere becomes a dollar."""
    return [_expand(argument, environment) for argument in argv]


def _expand(text: str, environment: Mapping[str, str]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, name in _references(text):
        parts += [text[position:start], "$" if name is None else environment.get(name, text[start:end])]
        position = end
    return "".join([*parts, text[position:]])


def reference_names(text: str) -> frozenset[str]:
    """Return the names in a text's references $(NAME)."""
    return frozenset(name for _, _, name in _references(text) if name is not None)


def _references(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Yield the place of each $(NAME) with its name, and of each $$ with None. Linear, which no regular expression would be."""
    position, last = 0, text.rfind(")")
    while (start := text.find("$", position)) >= 0:
        position = start + 1
        if text.startswith("$$", start):
            position = start + 2
            yield start, position, None
        elif start < last and text.startswith("$(", start):
            end = text.index(")", start)
            position = end + 1
            yield start, position, text[start + 2 : end]


def may_be_defined(text: str, container: Mapping[str, Any]) -> bool:
    """Return whether a reference that is left in a text is to a variable of which nobody knows the value: of the container, or of
    a service, such as DB_SERVICE_HOST or DB_PORT.
    """
    names = {entry["name"] for entry in container.get("env") or ()}
    return any(name in names or "_SERVICE_" in name or "_PORT" in name for name in reference_names(text))


def expand_probe_command(argv: Sequence[str], container: Mapping[str, Any]) -> tuple[str, ...]:
    """Replace references in the command of a probe: a kubelet knows only the values in the specification, and no others."""
    values = {entry["name"]: entry.get("value") or "" for entry in container.get("env") or ()}
    return tuple(expand_references(argv, values))
