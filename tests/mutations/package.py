"""The mutants of a package: rules that are removed at sites which a seed chooses, each with the unit tests that reach it."""

import ast
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from .equivalent import EQUIVALENT_SITES
from .reached import ReachedLines
from .removal import Removals
from .run import Work
from .sites import Site, chosen, sites_of, tables_read

ROOT = Path(__file__).parents[2]
LONGEST_SECONDS = 20
"""The processor time of the tests that are run on a mutant: hundreds of them reach some lines."""
SERVER = "server"
"""What is not changed by a choice of rules, but by all mutants of `mutants.py`."""


class Package(NamedTuple):
    folder: str
    """Most of its tests are in the same folder of tests/unit."""
    killed_share: float
    """The share of the mutants that must be killed: 95 % is the aim, a smaller one what was true when it was measured last."""
    folders_of_tests: Sequence[str] = ()
    """Other folders whose tests run its rules: those of what is made of it."""

    @property
    def tests(self) -> list[str]:
        return [f"tests/unit/{self.folder}", *self.folders_of_tests]


PACKAGES = {
    "scheduler": Package("scheduler", 0.9),
    "controllers": Package("controller_manager", 0.85, ("tests/packs/kruise/unit",)),
    "kubelet": Package("kubelet", 0.75),
    "runtime": Package("container_runtime", 0.0, ("tests/contract/container_runtime", "tests/unit/kubelet")),
    "network": Package("network", 0.0, ("tests/unit/container_runtime/simulated", "tests/unit/publisher")),
    "publisher": Package("publisher", 0.9),
    "explanations": Package("explanations", 0.9),
    "operators": Package("mockube/operators", 0.8),
    "exploration": Package("mockube/exploration", 0.6),
    "judging": Package("mockube/judging", 0.35),
}


class PackageRules(NamedTuple):
    """Mutants of a package, of which none is equivalent as far as we know."""

    folder: str
    seed: int
    count: int
    only: str

    def works(self, items: Sequence[pytest.Item], problems: list[str]) -> Sequence[Work]:
        reached = ReachedLines(ROOT, self.folder, items)
        problems += [f"{test} fails while its lines are recorded" for test in reached.failed]
        sites = [
            site
            for site in sites_of(ROOT, self.folder)
            if self.only in f"{site.file} {site.name}" and (site.file, site.name) not in EQUIVALENT_SITES
        ]
        sites = chosen(sites, seed=self.seed, count=self.count)
        for site in sites:
            _import(site)  # which a test would do only when it runs
        removals = Removals(ROOT)
        return [
            Work(removals.mutant(site), [*_in_time(reached, self._lines(site))], reached.seconds)
            for site in sites
        ]

    def _lines(self, site: Site) -> dict[str, Sequence[int]]:
        """Return the lines whose tests may notice a change of the site: for a table, those that read it."""
        if not site.is_table:
            return {site.file: site.lines}
        is_private = site.owner.startswith("_")
        files = [ROOT / site.file] if is_private else (ROOT / self.folder).rglob("*.py")
        return {
            str(file.relative_to(ROOT)): [
                *tables_read(ast.parse(file.read_bytes()), site.owner, is_own=file == ROOT / site.file)
            ]
            for file in files
        }


def _import(site: Site) -> None:
    parts = Path(site.file).with_suffix("").parts
    importlib.import_module(".".join(("mockube", *parts[parts[0] == "mockube" :])).removesuffix(".__init__"))


def _in_time(reached: ReachedLines, lines: dict[str, Sequence[int]]) -> Iterator[pytest.Item]:
    seconds = 0.0
    # Forked processes of a test, which are not recorded, may reach the lines.
    items = reached.tests_of(lines) or reached.tests_of(dict.fromkeys(lines))
    for item in items:
        seconds += reached.seconds[item.nodeid]
        if seconds < LONGEST_SECONDS:
            yield item
