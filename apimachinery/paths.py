"""Field paths in errors: `spec.containers[0].ports[1].name`.

Validation extends a path at every step, but prints it only for an error: extending is cheap and shares the parent.
"""

from typing import Final

from msgspec import Struct

MAX_STEP: Final = 1024
"""The maximum number of printed characters of a step. Valid keys of maps are shorter; invalid ones can have millions."""


class Path(Struct, frozen=True):
    """A path: one step and the parent path. A path without steps is printed as `<nil>`, as upstream does."""

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
    """Return a step, shortened to its printed length."""
    return step if len(step) <= MAX_STEP else f"{step[:MAX_STEP]}..."


ROOT = Path()
