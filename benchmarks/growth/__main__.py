"""Measure how cost grows, and draw it: `python -m benchmarks.growth [--quick] [--only nodes,pods] [--with-kubernetes]`.

Needs Linux, which reports CPU time and memory of processes. Nothing else should run; the results say which load there was.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson

from . import kubernetes, pictures
from .decisions import measure_decisions
from .pictures import DECISIONS, KUBERNETES, MACHINES, NODES, OBJECTS, PODS, WATCHERS, ZONE_FAILURE
from .processes import ControlPlane, mockube_up
from .stored_objects import measure_objects
from .watchers import measure_watchers
from .workloads import NODES_PER_POD_RUN, PODS_PER_NODE_RUN, Row, Start, measure
from .zone_failure import GUIDE, measure_zone_failure, with_table

NAMES = (NODES, PODS, WATCHERS, OBJECTS, DECISIONS, ZONE_FAILURE)
KUBERNETES_NAMES = (KUBERNETES + NODES, KUBERNETES + PODS)


class Sizes(NamedTuple):
    nodes: list[int]
    pods: list[int]
    watchers: list[int]
    objects: list[int]
    decisions: list[int]
    zone_failure: list[int]
    kubernetes_nodes: list[int]
    kubernetes_pods: list[int]
    idle_seconds: float


FULL = Sizes(
    nodes=[10, 100, 1_000, 5_000],
    pods=[100, 1_000, 10_000, 30_000],
    watchers=[1, 10, 100, 1_000, 3_000],
    objects=[150, 1_500, 15_000, 150_000],
    decisions=[10, 100, 1_000, 5_000, 15_000],
    zone_failure=[100_000],
    kubernetes_nodes=[10, 100, 1_000],
    kubernetes_pods=[100, 1_000, 10_000],
    idle_seconds=30.0,
)
QUICK = Sizes(
    nodes=[10, 100, 1_000],
    pods=[100, 1_000, 3_000],
    watchers=[1, 10, 100, 1_000],
    objects=[150, 1_500, 15_000],
    decisions=[10, 100, 1_000, 5_000],
    zone_failure=[],  # takes more than six minutes with any number of pods
    kubernetes_nodes=[10, 100],
    kubernetes_pods=[100],
    idle_seconds=10.0,
)


@contextmanager
def _in_new_folder(run: Callable[[int, Path], Any], nodes: int) -> Iterator[ControlPlane]:
    with TemporaryDirectory() as folder, run(nodes, Path(folder)) as plane:
        yield plane


class Section(NamedTuple):
    """A part of the results: a row for each size."""

    sizes: Sequence[int]
    measure: Callable[[int], Row]


def sections(sizes: Sizes, kwok: Sequence[str]) -> dict[str, Section]:
    """Return the sections by name; those of Kubernetes only with the command of kwok."""
    idle = sizes.idle_seconds
    mockube: Start = partial(_in_new_folder, mockube_up)
    found = {
        NODES: Section(sizes.nodes, lambda nodes: measure(mockube, nodes, PODS_PER_NODE_RUN, idle)),
        PODS: Section(sizes.pods, lambda pods: measure(mockube, NODES_PER_POD_RUN, pods, idle)),
        WATCHERS: Section(sizes.watchers, measure_watchers),
        OBJECTS: Section(sizes.objects, measure_objects),
        DECISIONS: Section(sizes.decisions, measure_decisions),
        ZONE_FAILURE: Section(sizes.zone_failure, measure_zone_failure),
    }
    if kwok:
        real: Start = partial(_in_new_folder, partial(kubernetes.kubernetes, kwok))
        create = partial(measure, real, idle_seconds=idle, only_creation=True)
        found[KUBERNETES + NODES] = Section(
            sizes.kubernetes_nodes, lambda nodes: create(nodes, PODS_PER_NODE_RUN)
        )
        found[KUBERNETES + PODS] = Section(
            sizes.kubernetes_pods, lambda pods: create(NODES_PER_POD_RUN, pods)
        )
    return found


def machine() -> Row:
    """Return what the results depend on."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=(__doc__ or "").split(":", 1)[0] + "."
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller sizes: about 5 minutes")
    parser.add_argument(
        "--only",
        metavar="NAMES",
        help=f"what to measure, of {', '.join((*NAMES, *KUBERNETES_NAMES))}; other results are kept",
    )
    parser.add_argument(
        "--with-kubernetes", action="store_true", help="also Kubernetes' own components, with kwok"
    )
    parser.add_argument(
        "--largest", type=int, metavar="N", help="leave out larger sizes, as on a machine with little memory"
    )
    parser.add_argument("--draw", action="store_true", help="only draw the results that there are")
    parser.add_argument(
        "--output", type=Path, default=pictures.RESULTS, help="the file of the results (%(default)s)"
    )
    options = parser.parse_args()
    if not Path("/proc/self/stat").exists():
        parser.error("only Linux reports CPU time and memory of other processes in /proc")
    names = NAMES + KUBERNETES_NAMES * options.with_kubernetes
    options.only = names if options.only is None else tuple(options.only.split(","))
    unknown = sorted({*options.only} - {*NAMES, *KUBERNETES_NAMES})
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join((*NAMES, *KUBERNETES_NAMES))}")
    return options


def main() -> None:
    options = _options()
    output: Path = options.output.resolve()
    results = orjson.loads(output.read_bytes()) if output.exists() else {}
    if not options.draw:
        with TemporaryDirectory() as folder:
            needs_kwok = any(name in KUBERNETES_NAMES for name in options.only)
            kwok = kubernetes.build_kwok(Path(folder)) if needs_kwok else ()
            for name, section in sections(QUICK if options.quick else FULL, kwok).items():
                sizes = [size for size in section.sizes if size <= (options.largest or size)]
                if name in options.only and sizes:
                    _measure(name, section._replace(sizes=sizes), results, output)
    pictures.write(results, output.parent)
    if output == pictures.RESULTS and results.get(ZONE_FAILURE):
        GUIDE.write_text(with_table(GUIDE.read_text(), results[ZONE_FAILURE][-1]))


def _measure(name: str, section: Section, results: Row, output: Path) -> None:
    """Replace a section of the results, and write these."""
    print(f"{name}:", flush=True)
    described = machine()
    results[name] = [section.measure(size) for size in section.sizes]
    results.setdefault(MACHINES, {})[name] = described
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
