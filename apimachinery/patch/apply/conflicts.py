"""What is refused because another manager owns it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mockube.apimachinery import gotext
from mockube.apimachinery.patch.apply.fieldset import Path, shown_path
from mockube.apimachinery.patch.apply.managers import Manager
from mockube.apimachinery.patch.errors import PatchError


class Conflict(NamedTuple):
    """A field that another manager owns."""

    manager: Manager
    path: Path

    @property
    def message(self) -> str:
        return f"conflict with {shown_manager(self.manager)}"

    @property
    def field(self) -> str:
        return shown_path(self.path)


class Conflicts(PatchError):
    """Another manager owns what would change, and the change was not forced."""

    def __init__(self, conflicts: Iterable[Conflict]) -> None:
        self.conflicts: Sequence[Conflict] = tuple(conflicts)
        super().__init__(_message(self.conflicts))


def _message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: {conflicts[0].message}: {conflicts[0].field}"
    lines: list[str] = []
    managers = {conflict.manager for conflict in conflicts}
    for manager in sorted(managers, key=Manager.text):
        lines.append(f"conflicts with {shown_manager(manager)}:")
        lines += [f"- {conflict.field}" for conflict in conflicts if conflict.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def shown_manager(manager: Manager) -> str:
    text = gotext.quote(manager.name)
    if manager.subresource:
        text += f" with subresource {gotext.quote(manager.subresource)}"
    return text if manager.is_apply else f"{text} using {manager.api_version}"
