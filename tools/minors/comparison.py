"""Compare two releases of upstream by declaration, beside the files of ours that have the same rules."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.minors.gomodules import TOOLS, go
from tools.minors.owners import Owner, Owners, owner_of

Declarations = Mapping[str, Mapping[str, str]]
"""The code of each declaration, by file and by name."""

WITHOUT_OWNER: Final = Owner(absent="no owner: add it to tools/minors/owners.yaml")


@dataclass(frozen=True)
class Change:
    path: str
    name: str
    kind: str
    """added, changed or removed."""
    added: int
    removed: int
    diff: tuple[str, ...]

    @property
    def lines(self) -> int:
        return self.added + self.removed


@dataclass(frozen=True)
class Group:
    """The changes that the same files of ours have to follow."""

    owner: Owner
    changes: tuple[Change, ...]

    @property
    def lines(self) -> int:
        return sum(change.lines for change in self.changes)


def read_declarations(files: Mapping[str, Path]) -> Declarations:
    paths = "\n".join(str(path) for path in files.values())
    found = json.loads(go("run", "main.go", folder=TOOLS / "declarations", text=paths.encode()))
    return {name: found[str(path)] for name, path in files.items()}


def changes(old: Declarations, new: Declarations) -> Iterator[Change]:
    """What differs, without fakes, and without declarations that only moved to another file of their package."""
    moved = set(_by_package(old)) & set(_by_package(new))
    for path in sorted({*old, *new}):
        before, after = old.get(path, {}), new.get(path, {})
        package = path.rpartition("/")[0]
        for name in [*before, *(name for name in after if name not in before)]:
            texts = before.get(name, ""), after.get(name, "")
            if name.lower().startswith("fake") or texts[0] == texts[1]:
                continue
            if not any((package, name, text) in moved for text in texts):
                yield _change(path, name, *texts)


def _by_package(declarations: Declarations) -> Iterator[tuple[str, str, str]]:
    for path, names in declarations.items():
        for name, text in names.items():
            yield path.rpartition("/")[0], name, text


def _change(path: str, name: str, before: str, after: str) -> Change:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    diff = tuple(lines)[2:]
    kind = "added" if not before else "changed" if after else "removed"
    added = sum(line.startswith("+") for line in diff)
    return Change(path, name, kind, added, sum(line.startswith("-") for line in diff), diff)


def groups(found: Iterable[Change], owners: Owners) -> list[Group]:
    """The changes by owner, the largest group first; what has no owner comes before all."""
    by_owner: dict[Owner, list[Change]] = {}
    for change in found:
        owner = owner_of(owners, change.path, change.name) or WITHOUT_OWNER
        by_owner.setdefault(owner, []).append(change)
    result = [Group(owner, tuple(group)) for owner, group in by_owner.items()]
    return sorted(
        result, key=lambda group: (group.owner != WITHOUT_OWNER, bool(group.owner.absent), -group.lines)
    )


def report(found: Iterable[Group], *, diffs: bool = False) -> Iterator[str]:
    """The lines of the report: files of ours, with upstream's changes by file, the largest first."""
    for group in found:
        yield f"{group.lines:6} {' '.join(group.owner.paths) or group.owner.absent}"
        if group.owner.absent and group.owner != WITHOUT_OWNER:
            yield from _files(group)
        else:
            yield from _declarations(group, diffs=diffs)
        yield ""


def _files(group: Group) -> Iterator[str]:
    for path, found in _by_path(group):
        yield f"{sum(change.lines for change in found):14} {path}"


def _declarations(group: Group, *, diffs: bool) -> Iterator[str]:
    for path, found in _by_path(group):
        yield f"{'':6} {path}"
        for change in sorted(found, key=lambda change: -change.lines):
            yield f"{'+' + str(change.added):>10} {'-' + str(change.removed):>5} {change.kind:8} {change.name}"
            if diffs:
                yield from (f"{'':18}{line}" for line in change.diff)


def _by_path(group: Group) -> list[tuple[str, list[Change]]]:
    by_path: dict[str, list[Change]] = {}
    for change in group.changes:
        by_path.setdefault(change.path, []).append(change)
    return sorted(by_path.items(), key=lambda item: -sum(change.lines for change in item[1]))
