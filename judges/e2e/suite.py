"""The official end-to-end suite as a program: build it, list its specs, run them and read the results."""

import queue
import re
import signal
import subprocess
import threading
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.minors.gomodules import AGNHOST, AGNHOST_FILES, SAMPLE_APISERVER, SUITE_PROGRAM, build_suite
from tools.minors.releases import CURRENT, OLDER
from tools.needed import require_programs

RELEASES = (CURRENT, *OLDER)
LABELS = re.compile(r" \[sig-[^][]*\]$")
PROBLEMS = ("failure", "error", "skipped")
CLEAN_UP_SECONDS = 60.0
"""How long an interrupted spec may take to remove what it made, before its process is killed."""


@dataclass(frozen=True)
class Result:
    spec: str
    passed: bool
    seconds: float
    message: str = ""


class Suite:
    """The suite of a minor release, in a folder where it is built once."""

    def __init__(self, folder: Path, minor: str):
        self._release = next(release for release in RELEASES if release.minor == minor)
        self._folder, self._program = folder, folder / SUITE_PROGRAM
        self.agnhost_files = {f"/{name}": folder / name for name in (AGNHOST, *AGNHOST_FILES)}
        """The files of the image of the suite's pods, by their paths there."""
        self.sample_apiserver = folder / SAMPLE_APISERVER

    def build(self) -> None:
        """Compile the suite and the programs of its pods, unless they exist."""
        built = (self._program, self.sample_apiserver, *self.agnhost_files.values())
        if not all(file.exists() for file in built):
            require_programs("go")
            build_suite(self._release, self._folder)

    def conformance_specs(self) -> list[str]:
        """Return the names of all conformance specs."""
        command = [self._program, "--list-conformance-tests"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
        return sorted(spec["codename"] for spec in yaml.safe_load(listed.stdout))

    def run(
        self, specs: Sequence[str], kubeconfig: Path, folder: Path, spec_seconds: float
    ) -> dict[str, Result]:
        """Run specs in sequence in one process, and interrupt it at the first that exceeds its time limit.

        The remaining specs, also after a spec that ends the process, have no result.
        """
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            self._program,
            f"--kubeconfig={kubeconfig}",
            "--provider=skeleton",
            f"--report-dir={folder}",
            f"--e2e-output-dir={folder}",
            "--num-nodes=3",
            "--disable-log-dump",
            "--ginkgo.v",
            "--ginkgo.no-color",
            "--ginkgo.timeout=24h",
            "--ginkgo.poll-progress-after=0",
            *(f"--ginkgo.focus={re.escape(spec)}$" for spec in specs),
        ]
        running = _follow(command, specs, folder / "output.log", spec_seconds)
        results = {spec: result for spec, result in read_results(folder).items() if spec in specs}
        if running and running not in results:
            results[running] = Result(running, passed=False, seconds=spec_seconds, message="took too long")
        return results


def read_results(folder: Path) -> dict[str, Result]:
    """Return the results of the specs in the JUnit reports of a folder."""
    found = {}
    for report in folder.glob("junit*.xml"):
        for case in ET.parse(report).iter("testcase"):
            if result := _result(case):
                found[result.spec] = result
    return found


def _result(case: ET.Element) -> Result | None:
    """Return a spec's result, or None if it was not selected; a spec that skips itself has not passed."""
    spec = _spec_name(case.get("name", "").removeprefix("[It] "))
    problem = next((case.find(kind) for kind in PROBLEMS if case.find(kind) is not None), None)
    message = "" if problem is None else problem.get("message") or problem.text or ""
    if case.get("status") in {"skipped", "pending"} and not message.startswith("skipped - "):
        return None
    return Result(spec, passed=problem is None, seconds=float(case.get("time", "0")), message=message)


def _spec_name(text: str) -> str:
    """Return the name of a spec without the list of its labels."""
    return LABELS.sub("", text)


def _follow(command: Sequence[object], specs: Sequence[str], log: Path, spec_seconds: float) -> str:
    """Run a process to its end, and return the spec that was interrupted or ended it, if one was."""
    names = frozenset(specs)
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    started: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        with log.open("w") as file:
            for line in process.stdout:
                file.write(line)
                file.flush()
                if (name := _spec_name(line.strip())) in names:
                    started.put(name)
        started.put("")

    reader = threading.Thread(target=read)
    reader.start()
    current = ""
    try:
        while True:
            name = started.get(timeout=spec_seconds)
            if not name:
                return current if process.wait() not in {0, 1} else ""
            current = name
    except queue.Empty:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(CLEAN_UP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        return current
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
