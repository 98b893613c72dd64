"""Measure the start-up and shutdown time of an in-process cluster.

    python benchmarks/in_process_cluster.py [COUNT]

A cluster is ready when the server responds, its three nodes are ready and pods can be created. The first
cluster of a process also compiles what later ones share, so it is measured in COUNT (10) processes; then
COUNT later clusters are measured in one process.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def once() -> tuple[float, float]:
    """Return the seconds until a cluster is ready, and the seconds until it has stopped."""
    from mockube.cluster import Cluster  # noqa: PLC0415 - the import is measured

    started = time.perf_counter()
    cluster = Cluster().start()
    ready = time.perf_counter()
    cluster.stop()
    return ready - started, time.perf_counter() - ready


def importing() -> float:
    started = time.perf_counter()
    import mockube.cluster  # noqa: F401, PLC0415 - as above

    return time.perf_counter() - started


def child() -> None:
    print(importing(), *once())


def figures(name: str, seconds: list[float]) -> None:
    middle, minimum, maximum = statistics.median(seconds), min(seconds), max(seconds)
    print(f"{name:32} {middle * 1e3:7.1f} ms  ({minimum * 1e3:.1f} to {maximum * 1e3:.1f})")


def main(count: int) -> None:
    fresh = []
    for _ in range(count):
        answer = subprocess.run(
            [sys.executable, __file__, "--child"], capture_output=True, text=True, check=True
        )
        fresh.append([float(word) for word in answer.stdout.split()])
    once()
    later = [once() for _ in range(count)]
    figures("import", [one[0] for one in fresh])
    figures("ready, first of a process", [one[1] for one in fresh])
    figures("ready, later in it", [one[0] for one in later])
    figures("gone", [one[1] for one in later])


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        child()
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 10)
