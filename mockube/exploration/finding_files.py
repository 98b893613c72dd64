"""The files of findings in a folder: what replays each, a test and a report of it, and an index of all for programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import Struct

from mockube.apimachinery.tree import Tree
from mockube.component_base.printable import printable
from mockube.report.page import comparison_page

from .findings import TYPE, ExplorationCall, OperatorFinding, report, write_finding

if TYPE_CHECKING:
    from .exploration import Exploration

INDEX: Final = "findings.json"
INDEX_TYPE: Final = "Findings of mockube explore"
WRITTEN: Final = "Written by mockube explore: this test fails while the finding is there."
PYTEST: Final = "pytest"
GO: Final = "go"


class FindingPaths(Struct, frozen=True, kw_only=True):
    """The files of a finding."""

    finding: Path
    test: Path
    report: Path
    log: Path

    def lines(self) -> Sequence[tuple[str, Path]]:
        """Return the paths with what they are for, as a report prints them."""
        return [
            ("replay it: mockube explore --replay", self.finding),
            ("as a test:", self.test),
            *([("both runs side by side:", self.report)] if self.report.exists() else ()),
            *([("what the operator printed:", self.log)] if self.log.exists() else ()),
        ]


class FindingFolder:
    """Writes each finding when it is confirmed, in place of those of an earlier exploration."""

    def __init__(self, folder: Path, call: ExplorationCall, language: str = PYTEST) -> None:
        self._folder, self._call, self._language = folder, call, language
        self.paths: list[FindingPaths] = []

    def add(self, finding: OperatorFinding) -> None:
        if not self.paths:
            remove_findings(self._folder)
        number = len(self.paths) + 1
        name, test = _TESTS[self._language]
        paths = FindingPaths(
            finding=self._folder / f"finding-{number}.yaml",
            test=self._folder / name.format(number),
            report=self._folder / f"finding-{number}.html",
            log=self._folder / f"finding-{number}.log",
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        write_finding(paths.finding, finding, self._call)
        paths.test.write_text("\n".join(test(finding, number, self._call)) + "\n", encoding="utf-8")
        if finding.log:
            paths.log.write_text(finding.log, encoding="utf-8")
        if len(finding.runs) == (2 if finding.plan.disturbances else 1):
            paths.report.write_text(_page(finding, number), encoding="utf-8")
        self.paths.append(paths)

    def end(self, exploration: "Exploration") -> None:
        """Write the index of the findings, also if there are none."""
        if not self.paths:
            remove_findings(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        content = orjson.dumps(self._index(exploration), option=orjson.OPT_INDENT_2)
        (self._folder / INDEX).write_bytes(content + b"\n")

    def _index(self, exploration: "Exploration") -> Tree:
        return {
            "type": INDEX_TYPE,
            "findings": [
                {
                    "problems": [problem.text for problem in finding.problems],
                    "when": finding.plan.parts,
                    "plan": finding.plan.trees(),
                    "history": finding.history,
                    "seconds": round(finding.seconds, 3),
                    "repeatedSeconds": round(finding.repeated_seconds, 3),
                    "confirmed": finding.confirmed,
                    "repetitions": finding.repetitions,
                    "others": finding.others,
                    "file": paths.finding.name,
                    "test": paths.test.name,
                    "report": paths.report.name if paths.report.exists() else "",
                    "log": paths.log.name if paths.log.exists() else "",
                }
                for finding, paths in zip(exploration.findings, self.paths, strict=True)
            ],
            "plans": exploration.runs,
            "seconds": round(exploration.seconds, 3),
            "covered": exploration.covered,
            "coverable": exploration.coverable,
            "notApplied": exploration.not_applied,
            "notJudged": exploration.not_judged,
            "notSeenAgain": exploration.not_seen_again,
            "repairedLater": exploration.repaired_later,
            "notes": exploration.notes,
        }


def remove_findings(folder: Path) -> None:
    """Remove the files of an earlier exploration; of tests those that still have the first line."""
    index = folder / INDEX
    if index.is_file() and INDEX_TYPE.encode() in index.read_bytes()[:100]:
        index.unlink()
    for path in folder.glob("finding-*.yaml"):
        if path.is_file() and path.read_bytes().startswith(f"type: {TYPE}".encode()):
            _remove_companions(path)
            path.unlink()


def _remove_companions(path: Path) -> None:
    number = path.stem.partition("-")[2]
    for suffix in (".html", ".log"):
        path.with_suffix(suffix).unlink(missing_ok=True)
    for name, _ in _TESTS.values():
        test = path.parent / name.format(number)
        if (
            test.is_file()
            and WRITTEN in test.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
        ):
            test.unlink()


def _page(finding: OperatorFinding, number: int) -> str:
    text = "\n".join(report(finding, number))
    return comparison_page(printable(finding.problems[0].text), text, finding.runs)


def _about(finding: OperatorFinding) -> Iterator[str]:
    """Yield what a test is about, for its comment."""
    yield WRITTEN
    yield ""
    yield from (printable(problem.text) for problem in finding.problems)
    yield from (printable(f"when {part}") for part in finding.plan.parts)


def _pytest(finding: OperatorFinding, number: int, call: ExplorationCall) -> Iterator[str]:
    yield from (f"# {line}".rstrip() for line in _about(finding))
    module, _, name = call.function.partition(":")
    yield from ("", "from pathlib import Path", "", "import mockube", "import pytest")
    if name:
        yield f"from {module} import {name}"
    main = f", main={name}" if name else ""
    yield from ("", "", f"def test_finding_{number}():")
    yield f'    replay = mockube.replay_finding(Path(__file__).with_name("finding-{number}.yaml"){main})'
    yield "    if replay.findings:"
    yield "        pytest.fail(str(replay), pytrace=False)"


def _go(finding: OperatorFinding, number: int, _: ExplorationCall) -> Iterator[str]:
    yield from (f"// {line}".rstrip() for line in _about(finding))
    yield from ("", "package findings", "", "import (", '\t"testing"', "", '\t"mockube.dev/mockube"', ")", "")
    yield f"func TestFinding{number}(t *testing.T) {{"
    yield f'\tmockube.ReplayFinding(t, "finding-{number}.yaml")'
    yield "}"


_TESTS: Final[Mapping[str, tuple[str, Callable[[OperatorFinding, int, ExplorationCall], Iterator[str]]]]] = {
    PYTEST: ("test_finding_{}.py", _pytest),
    GO: ("finding_{}_test.go", _go),
}
LANGUAGES: Final = (*_TESTS,)
