"""`make suites`: run public test suites against mockube, and compare their results with the known failures.

    python -m judges.suites --suites DIR --only flux-ssa,jobset

DIR has checkouts of the suites, in folders with the names of `suites.yaml`; others are downloaded at their versions. The logs are in
`build/suites`. The exit code is 1 if a test fails that is not listed, or if one passes that is.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import yaml

from judges.suites.results import of_cargo, of_go, of_maven, unexpected
from judges.suites.sources import SourceMissing, Suite, working_copy
from tests.support.processes.commands import Mockube
from tests.support.processes.process import ROOT
from tools.needed import require_programs

HERE = Path(__file__).parent
BUILD = ROOT / "build/suites"


def main() -> int:
    options = _options()
    suites = read_suites()
    unknown = sorted(set(options.only) - suites.keys())
    if unknown:
        raise SystemExit(f"suites.yaml has no {', '.join(unknown)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    print(f"{'suite':24} {'version':10} {'tests':>6} {'pass':>6} {'seconds':>8}", flush=True)
    problems = 0
    for suite in suites.values():
        if not options.only or suite.name in options.only:
            problems += run(suite, options)
    return int(bool(problems))


def read_suites() -> dict[str, Suite]:
    settings = yaml.safe_load((HERE / "suites.yaml").read_text())
    return {name: Suite(name=name, **fields) for name, fields in settings.items()}


def run(suite: Suite, options) -> int:
    """Run a suite and print its row; return the number of unexpected results."""
    checkouts = Path(options.suites).absolute() if options.suites else None
    try:
        folder = working_copy(suite, checkouts, BUILD / suite.name)
    except SourceMissing as error:
        print(f"{suite.name:24} {suite.version:10} {'-':>6} {'-':>6} {'-':>8}\n    {error}", flush=True)
        return 1
    require_programs(suite.command[0] if suite.command else "go")
    log = BUILD / f"{suite.name}.log"
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mockube-suites-") as text:
        mockube = Mockube(Path(text))
        try:
            _execute(suite, folder, _environment(suite, mockube), log)
        finally:
            mockube.run("down")
            mockube.close()
    results = _results(suite, folder, log)
    passed = sum(results.values())
    seconds = time.monotonic() - begun
    print(f"{suite.name:24} {suite.version:10} {len(results):6} {passed:6} {seconds:8.0f}", flush=True)
    problems = unexpected(results, suite.failures) if results else [f"no test ran: see {log}"]
    for problem in problems:
        print(f"    {problem}", flush=True)
    return len(problems)


def _environment(suite: Suite, mockube: Mockube) -> Mapping[str, str]:
    """Start what the suite's tests use, and return the variables that name it."""
    if suite.server == "envtest":
        assets = mockube.home / "assets"
        _check(mockube.run("envtest", str(assets)))
        return {"KUBEBUILDER_ASSETS": str(assets)}
    _check(mockube.run("up", "--detach", "--secure-port=0", "--profile=minimal", "--simulate-nodes=3"))
    return {"KUBECONFIG": str(mockube.folder().kubeconfig)}


def _check(finished: subprocess.CompletedProcess[str]) -> None:
    if finished.returncode:
        raise SystemExit(finished.stderr)


def _execute(suite: Suite, folder: Path, environment: Mapping[str, str], log: Path) -> None:
    command = [*suite.command]
    if suite.packages:
        skips = [f"-skip={'|'.join(suite.skip)}"] if suite.skip else []
        command = [
            "go",
            "test",
            "-json",
            "-count=1",
            "-p=1",
            "-timeout=40m",
            *skips,
            *suite.packages,
            *suite.args,
        ]
    elif suite.skip:
        command += [word for name in suite.skip for word in ("--skip", name)]
    with log.open("w") as output:
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )


def _results(suite: Suite, folder: Path, log: Path) -> dict[str, bool]:
    lines = log.read_text(errors="replace").splitlines()
    if suite.packages:
        return of_go(lines)
    return of_maven(folder) if suite.command[0] == "mvn" else of_cargo(lines)


def _options():
    parser = argparse.ArgumentParser(prog="python -m judges.suites", description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", help="a folder of checkouts, by the names of the suites")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help="names of suites, with commas"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
