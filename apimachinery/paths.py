"""Field paths: where in an object an error is (`spec.containers[0].ports[1].name`).

A path is extended on the way down and printed only when something is wrong, so extending is cheap and shares the parent.
"""

from typing import Final

from msgspec import Struct

MAX_STEP: Final = 1024
"""The number of printed characters of a step: a valid key of a map is not longer, but others may have millions."""


class Path(Struct, frozen=True):
    """One step and the way to it. The path without steps prints as Go prints nil, which is what upstream shows."""

    parent: "Path | None" = None
    step: str | int = ""

    def child(self, *names: str) -> "Path":
        path = self
        for name in names:
            path = Path(path, f".{name}")
        return path

    def index(self, index: int) -> "Path":
        return Path(self, index)

    def key(self, key: str) -> "Path":
        return Path(self, f"[{key}]")

    def __str__(self) -> str:
        steps = []
        path = self
        while path.parent is not None:
            steps.append(format_step(path.step) if isinstance(path.step, str) else f"[{path.step}]")
            path = path.parent
        return "".join(reversed(steps)).removeprefix(".") or "<nil>"


def format_step(step: str) -> str:
    """A step as far as it is printed."""
    return step if len(step) <= MAX_STEP else f"{step[:MAX_STEP]}..."


ROOT = Path()
