"""`make lessons`: replay the commands of public pages and exercises, each page in a new cluster, and compare the shown output.

    python -m judges.lessons --lessons DIR --only ckad/a.core_concepts.md --jobs 2

DIR has the repositories that `lessons.yaml` names; others are cloned. All output is in `build/lessons`. The exit code is 1 if a
command fails or prints something else and is not listed.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from judges.choices import require_some
from judges.clusters import running_cluster
from judges.lessons.comparison import missing_lines
from judges.lessons.pages import Step, read_samples, read_steps
from judges.repositories import checkout
from judges.scripts import run_script
from judges.suites.sources import SourceMissing
from tests.support.processes.process import ROOT

HERE = Path(__file__).parent
BUILD = ROOT / "build/lessons"
COMMAND_SECONDS = 40
SHOWN_SECONDS = 45
"""The time in which the shown output must appear: a reader is slower than a program."""
_ONLY_LOOKS = re.compile(r"\s*kubectl (?:get|describe|top|logs|rollout status|events)\b")
_FILE = re.compile(r"(?:-f|--filename)[ =](?:\./)?(\w[\w.-]*\.ya?ml)\b")
_REPEATED = "Error from server (AlreadyExists)"
_RUN = """set -a; . {state}; {{ {command}
}} </dev/null; code=$?; {{ export -p; printf 'cd %q\\n' "$PWD"; }} >{state}; exit $code
"""


class Result(NamedTuple):
    step: Step
    problem: str
    """Why the step differs from the page; "" if it does not."""
    is_compared: bool


class Page(NamedTuple):
    name: str
    text: str
    known: Mapping[str, str]
    """By the start of a command, the reason why it fails or prints something else."""


def main() -> int:
    options = _options()
    settings, not_run = read_settings()
    unexpected, count = 0, 0
    with tempfile.TemporaryDirectory(prefix="mockube-lessons-") as text:
        for name, lesson in settings.items():
            if options.only and not any(start.startswith(name) for start in options.only):
                continue
            source = Path(options.lessons).absolute() if options.lessons else None
            try:
                folder = checkout(lesson["repository"], lesson["paths"], source, Path(text) / name)
            except SourceMissing as error:
                print(f"{name}: {error}", flush=True)
                unexpected += 1
                continue
            pages = [page for page in read_pages(name, lesson, folder) if _is_chosen(page.name, options.only)]
            count += len(pages)
            unexpected += run_pages(pages, _Replay(folder, lesson, not_run, options.flags), options.jobs)
    require_some(range(count + unexpected), f"no page is named {' or '.join(options.only)}")
    return int(bool(unexpected))


def read_settings() -> tuple[dict[str, Any], Mapping[re.Pattern[str], str]]:
    """Return the sources of pages, and the reasons why commands are not run, by their patterns."""
    settings = yaml.safe_load((HERE / "lessons.yaml").read_text())
    reasons = settings.pop("notRun")
    return settings, {re.compile(pattern, re.MULTILINE): reason for pattern, reason in reasons.items()}


def read_pages(name: str, lesson: Mapping[str, Any], folder: Path) -> Iterator[Page]:
    """Yield the pages that have commands and are not skipped."""
    pages, skipped, known = lesson["pages"], lesson.get("skip") or {}, lesson.get("known") or {}
    for path in sorted(file for pattern in pages for file in folder.glob(pattern)):
        title = path.relative_to(folder / lesson["folder"]).as_posix()
        text = path.read_text()
        if title not in skipped and any(read_steps(text)):
            yield Page(f"{name}/{title}", text, known.get(title) or {})


def run_pages(pages: Sequence[Page], replay: "_Replay", jobs: int) -> int:
    """Print a row for each page; return the number of unexpected differences."""
    BUILD.mkdir(parents=True, exist_ok=True)
    print(f"{'page':84} {'run':>4} {'shown':>5} {'differ':>6}", flush=True)
    unexpected = 0
    with ThreadPoolExecutor(jobs) as pool:
        for page, results in zip(pages, pool.map(replay.run, pages), strict=True):
            unexpected += _print_row(page, results)
    print(f"{len(pages)} pages; {unexpected} differences are not listed", flush=True)
    return unexpected


def _print_row(page: Page, results: Sequence[Result]) -> int:
    problems = [result for result in results if result.problem]
    shown = sum(result.is_compared for result in results)
    print(f"{page.name:84} {len(results):4} {shown:5} {len(problems):6}", flush=True)
    unlisted = [result for result in problems if not any(map(result.step.title.startswith, page.known))]
    for result in unlisted:
        print(f"    line {result.step.line}: {result.step.title}\n        {result.problem}", flush=True)
    return len(unlisted)


class _Replay:
    """Replays pages of one source."""

    def __init__(
        self, folder: Path, lesson: Mapping[str, Any], not_run: Mapping[re.Pattern[str], str], flags
    ) -> None:
        self._examples = {url: str(folder / path) for url, path in (lesson.get("examples") or {}).items()}
        self._not_run = not_run
        self._replacements = {
            re.compile(pattern, re.MULTILINE): text for pattern, text in (lesson.get("replace") or {}).items()
        }
        self._flags = flags

    def run(self, page: Page) -> list[Result]:
        log = BUILD / f"{page.name.replace('/', '_')}.log"
        with running_cluster(self._flags) as (kubeconfig, folder), log.open("w") as output:
            shell = _Shell(folder, kubeconfig)
            samples = {name: self._sample(path) for name, path in read_samples(page.text).items()}
            results = []
            for shown in read_steps(page.text):
                step = self._replace(shown)
                reason = next(
                    (why for pattern, why in self._not_run.items() if pattern.search(step.command)), ""
                )
                if reason:
                    output.write(f"$ {step.command}\n(not run: {reason})\n\n")
                    continue
                for name in _FILE.findall(step.command):
                    shell.write_missing(name, samples.get(name) or step.manifest)
                results.append(self._run_step(shell, step, output))
            return results

    def _sample(self, path: str) -> str:
        """Return an example that a page shows; "" without a copy of it."""
        files = (Path(folder, path) for folder in self._examples.values())
        return next((file.read_text() for file in files if file.is_file()), "")

    def _replace(self, step: Step) -> Step:
        """Return a step whose commands are those for mockube where the page has another program's."""
        command = step.command
        for pattern, text in self._replacements.items():
            command = pattern.sub(text, command)
        return step._replace(command=command)

    def _run_step(self, shell: "_Shell", step: Step, log) -> Result:
        command, deadline = step.command, time.monotonic() + SHOWN_SECONDS
        for url, path in self._examples.items():
            command = command.replace(url, path)
        code, printed = shell.run(command)
        while (
            not _is_shown(step, code, printed) and _ONLY_LOOKS.match(command) and time.monotonic() < deadline
        ):
            code, printed = shell.run(f"sleep 1; {command}")
        missing = missing_lines(step.output, printed)
        log.write(f"$ {step.command}\n{printed}[exit code {code}]\n")
        if step.output:
            log.write(f"--- shown:\n{step.output}\n--- not printed:\n" + "\n".join(missing))
        log.write("\n\n")
        problem = ""
        if _REPEATED in printed:
            pass  # pages show several ways to create one object
        elif missing:
            problem = f"not printed: {missing[0][:150]}"
        elif code and not step.output:
            problem = f"exit code {code}: {printed.strip()[-200:]}".replace("\n", " / ")
        return Result(step, problem, bool(step.output))


def _is_shown(step: Step, code: int, printed: str) -> bool:
    """Return whether a step printed what its page shows; without output on the page, whether it succeeded."""
    return not missing_lines(step.output, printed) and (code == 0 or bool(step.output))


class _Shell:
    """A shell whose variables and folder remain from one step to the next."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self._folder, self._state = folder / "work", folder / "state"
        self._folder.mkdir()
        self._state.touch()
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self._folder),
            "KUBECONFIG": str(kubeconfig),
            "MOCKUBE_KUBECONFIG": str(kubeconfig),
            "TERM": "dumb",
        }

    def write_missing(self, name: str, text: str) -> None:
        """Write a file that no step has written: the page tells the reader to."""
        path = self._folder / name
        if text and not path.exists():
            path.write_text(text)

    def run(self, command: str) -> tuple[int, str]:
        script = _RUN.format(state=self._state, command=command)
        return run_script(script, self._folder, self._environment, COMMAND_SECONDS)


def _is_chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(name.startswith(start) for start in only)


def _options():
    parser = argparse.ArgumentParser(prog="python -m judges.lessons", description=__doc__.partition("\n")[0])
    parser.add_argument("--lessons", help="a folder with the repositories")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help="how names of pages begin, with commas"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many pages are replayed at a time")
    parser.add_argument("flags", nargs="*", help="further flags of `mockube up`, after --")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
