"""The routine for a new minor release, in steps; `docs/guides/new-minor.md` describes it.

A step is a function of `STEPS`. It prints what it found, and returns a summary. A step that reads what an earlier one wrote
runs in a process of its own.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tools.minors.comparison import Group, changes, groups, read_declarations, report
from tools.minors.gomodules import COMPONENTS as PROGRAMS
from tools.minors.gomodules import Release, build_components
from tools.minors.owners import FILE, UPSTREAM_FILES, owner_of, read_owners
from tools.minors.releases import CURRENT, OLDER
from tools.minors.upstream import upstream_files

Step: TypeAlias = Callable[[Release, argparse.Namespace], str]

ROOT: Final = Path(__file__).parents[2]
COMPONENTS: Final = ROOT / ".kubernetes"
"""Where the components of a release are built; git ignores it."""
RELEASES: Final = ROOT / "apimachinery/schema/minors.py"
TABLE: Final = "RELEASES: Final[Mapping[str, str]] = {\n"
PAGES: Final = ("README.md", "CONTRIBUTING.md", "docs", ":!docs/fidelity/*.md", "deploy", "examples")
"""Those of fidelity are generated from YAML files."""


class ReleaseError(Exception):
    """A release that the routine cannot follow, or a step without what an earlier one makes."""


def compare(release: Release, options: argparse.Namespace) -> str:
    """Print the declarations that differ from the current release, beside the files of ours with the same rules."""
    old, new = upstream_files(options.since), upstream_files(release)
    found = changes(read_declarations(old), read_declarations(new))
    chosen = [
        group
        for group in groups(found, read_owners(FILE.read_text()))
        if not options.only or any(path.startswith(options.only) for path in group.owner.paths)
    ]
    for line in report(chosen, diffs=options.diff):
        print(line)
    return f"{len({*old, *new})} files; {_size(chosen)}"


def _size(chosen: list[Group]) -> str:
    declarations, lines = sum(len(group.changes) for group in chosen), sum(group.lines for group in chosen)
    return f"{lines} lines of {declarations} declarations differ, in {len(chosen)} groups"


def set_release(release: Release, _options: argparse.Namespace) -> str:
    """Make the release the newest one, or another patch release of its minor."""
    RELEASES.write_text(with_release(RELEASES.read_text(), release))
    return f"written into {RELEASES.relative_to(ROOT)}"


def with_release(source: str, release: Release) -> str:
    """Return the source of the table of releases with another one; the newest is first."""
    row = f'    "{release.minor}": "{release.version}",\n'
    of_minor = re.compile(rf'^    "{re.escape(release.minor)}": "[^"]*",\n', re.MULTILINE)
    return of_minor.sub(row, source) if of_minor.search(source) else source.replace(TABLE, TABLE + row)


def check_in_table(source: str, release: Release) -> None:
    """Raise `ReleaseError` unless the table of releases has the release: steps after it read the release from there."""
    if f'"{release.minor}": "{release.version}",\n' not in source:
        raise ReleaseError(f"the table of releases does not have {release.version}: --step release adds it")


def derive(release: Release, _options: argparse.Namespace) -> str:
    """Derive fields, gates, roles, OpenAPI, protobuf and hashes of the newest minor, and those of the older ones."""
    check_in_table(RELEASES.read_text(), release)
    _run_python("-m", "tools.minors", "derive")
    _run_python("-m", "tools.minors", "older")
    return "see git status"


def list_files(release: Release, _options: argparse.Namespace) -> str:
    """List upstream's files, and print those that have no owner yet."""
    check_in_table(RELEASES.read_text(), release)
    _run_python("-m", "tools.minors", "files")
    owners = read_owners(FILE.read_text())
    paths = UPSTREAM_FILES.read_text().splitlines()
    missing = [path for path in paths if owner_of(owners, path) is None]
    for path in missing:
        print(f"    no owner: {path}")
    return f"{len(paths)} files, {len(missing)} without an owner"


def build(release: Release, _options: argparse.Namespace) -> str:
    """Build kube-apiserver, kube-controller-manager and kube-scheduler."""
    folder = COMPONENTS / release.version
    build_components(release, folder)
    return f"built into {folder.relative_to(ROOT)}"


def record(release: Release, options: argparse.Namespace) -> str:
    """Record all conversations anew, and print those whose responses changed."""
    folder = COMPONENTS / release.version
    if not (folder / PROGRAMS[0]).exists():
        raise ReleaseError(f"{folder.relative_to(ROOT)} has no components: --step build builds them")
    components = {"MOCKUBE_REAL_KUBERNETES": str(folder)}
    # Responses of another patch release are not kept: a minor is served as its newest patch.
    older = ["--older", options.since.minor] if options.since.minor != release.minor else []
    _run_python("-m", "judges.recorder.again", *older, environment=components)
    _run_python("-m", "judges.recorder.openapi", environment=components)
    return "see git diff tests/conformance/golden"


def list_rest(_release: Release, options: argparse.Namespace) -> str:
    """Print what is left to do by hand."""
    paths = subprocess.run(
        ["git", "grep", "-l", "-F", options.since.version, "--", *PAGES],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    ).stdout.split()
    for line in (
        "follow the changed rules that `compare` printed; rules of the older minor go into apiserver/kinds/minors",
        "give the files without an owner one in tools/minors/owners.yaml",
        "make test, make conformance: read each recording that differs",
        "make differential beside the new components",
        "record sessions, trails and protobuf anew: tests/conformance/golden/README.md",
        *(f"name the release in {path}" for path in paths),
    ):
        print(f"    [ ] {line}")
    return f"{len(paths)} pages name {options.since.version}"


def _run_python(*arguments: str, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, env={**os.environ, **(environment or {})}
    )


STEPS: Final[Mapping[str, Step]] = {
    "compare": compare,
    "release": set_release,
    "derive": derive,
    "files": list_files,
    "build": build,
    "record": record,
    "rest": list_rest,
}
"""In their order."""
STEPS_OF_OLDER: Final = ("compare", "release", "derive", "rest")
"""The steps for a patch release of an older minor: the current list of files and the recordings are those of the newest."""


def run_steps(release: Release, options: argparse.Namespace) -> None:
    served = (CURRENT, *OLDER)
    options.since = options.since or default_since(release, served)
    check_releases(release, options.since, served)
    for name in _chosen_steps(release, options):
        start = time.monotonic()
        summary = STEPS[name](release, options)
        print(
            f"{name}: {options.since.version} to {release.version}: {summary}; {time.monotonic() - start:.0f} s"
        )


def default_since(release: Release, served: Sequence[Release]) -> Release:
    """Return the served release of the same minor, or the newest one."""
    return next((one for one in served if one.minor == release.minor), served[0])


def check_releases(release: Release, since: Release, served: Sequence[Release]) -> None:
    """Raise `ReleaseError` unless the release is a newer patch of a served minor, or the minor after the newest."""
    newest = served[0]
    same_minor = next((one for one in served if one.minor == release.minor), None)
    following = (*newest.order[:1], newest.order[1] + 1)
    if same_minor is None and release.order[:2] != following:
        raise ReleaseError(
            f"{release.version} is no release of a served minor ({served[-1].minor} to {newest.minor}) or of the next one"
        )
    if same_minor is not None and release.order < same_minor.order:
        raise ReleaseError(f"{release.version} is older than {same_minor.version}, which is served already")
    if since.order >= release.order:
        raise ReleaseError(
            f"{release.version} is not newer than {since.version}; --since names the release that was served before"
        )


def _chosen_steps(release: Release, options: argparse.Namespace) -> Sequence[str]:
    """Return the steps to run; the comparison alone if it is limited, because a whole one is the begin of the routine."""
    if options.step:
        return [options.step]
    if options.only or options.diff:
        return ["compare"]
    return [*STEPS] if release.order[:2] >= CURRENT.order[:2] else STEPS_OF_OLDER
