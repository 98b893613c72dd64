"""`make fuzz`: run all targets for a given time, and print the results.

    python -m tests.fuzz --minutes 60 --seed 7 --targets yaml,patches --jobs 2 --requests 50000

Ends with 1 if there was a fault; the smallest case of each is a file under tests/fuzz/corpus from then on. Hostile
requests over a socket are sent by `tests/integration/test_hostile_requests.py`, before the rest.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz import engine, report
from tests.fuzz.share import Share
from tests.fuzz.targets import TARGETS

STORM = "tests/integration/test_hostile_requests.py::test_hostile_requests_leave_server_working"


def main() -> int:
    options = _options()
    storm = _send_hostile_requests(options.requests, options.seed) if options.requests else 0
    names = options.targets.split(",") if options.targets else list(TARGETS)
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="mockube-fuzz-") as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        running = [
            pool.submit(
                Share(names[at :: options.jobs], options.seed, _make_folder(Path(folder) / str(at))).run,
                options.minutes * 60,
            )
            for at in range(min(options.jobs, len(names)))
        ]
        figures = {name: found for future in running for name, found in future.result().items()}
    report.write(figures, seconds=time.monotonic() - begun, seed=options.seed)
    findings = [(name, finding) for name, found in figures.items() for finding in found.findings.values()]
    for name, finding in findings:
        print("kept:", engine.keep(name, finding.case, note=finding.signature).relative_to(engine.ROOT))
    return 1 if findings or storm else 0


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _send_hostile_requests(count: int, seed: int) -> int:
    environment = os.environ | {"MOCKUBE_HOSTILE_REQUESTS": str(count), "MOCKUBE_HOSTILE_SEED": str(seed)}
    print(f"{count} hostile requests over a socket", flush=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", STORM], cwd=engine.ROOT, env=environment, check=False
    ).returncode


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", default="", help=f"some of {', '.join(TARGETS)}")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--requests", type=int, default=0, help="hostile requests over a socket, first")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
