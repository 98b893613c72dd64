"""The curves of docs/benchmarks, drawn from growth.json. Each shows one idea."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from .chart import Axes, Chart, Curve, draw
from .decisions import PODS as DECIDED_PODS
from .processes import MANAGER, ROOT, SERVER
from .stored_objects import CREATE_AND_DELETE, GET, MERGE_PATCH, PAGE, SELECTOR
from .workloads import NODES_PER_POD_RUN, PODS_PER_NODE_RUN, Row

FOLDER: Final = ROOT / "docs/benchmarks"
RESULTS: Final = FOLDER / "growth.json"
NODES, PODS, WATCHERS, OBJECTS, DECISIONS = "nodes", "pods", "watchers", "objects", "decisions"
ZONE_FAILURE: Final = "zone-failure"
MACHINES: Final = "machines"
"""The part of the results that says where and when each section was measured."""
KUBERNETES: Final = "kubernetes-"
"""Begins the names of the sections that were measured with Kubernetes' own components."""
STEPS: Final = {"up": "all ready", "rollout": "updated", "gone": "deleted"}
"""The steps of a Deployment by their names in the rows, and in the pictures."""

Results = Mapping[str, Any]
Value = Callable[[Row], float]


class Picture(NamedTuple):
    section: str
    title: str
    y: str
    values: Mapping[str, Value]
    """The curves by name."""
    kubernetes: Mapping[str, Value] = {}
    """Curves of the same section of Kubernetes' components."""
    axes: Axes = Axes.FACTORS


class Size(NamedTuple):
    field: str
    """The field of a row that the horizontal axis shows."""
    name: str


SIZES: Final = {
    NODES: Size("nodes", "nodes"),
    PODS: Size("pods", "pods"),
    WATCHERS: Size("watchers", "watchers"),
    OBJECTS: Size("objects", "stored pods"),
    DECISIONS: Size("nodes", "nodes"),
}


def _seconds(step: str) -> Value:
    return lambda row: float(row[step]["seconds"])


def _cpu_per_pod(*processes: str) -> Value:
    """Return the milliseconds for each pod that becomes ready; of all processes if none is named."""
    return lambda row: _sum(row["up"]["cpu"], processes) / row["pods"] * 1e3


def _idle(*processes: str) -> Value:
    return lambda row: _sum(row["idle"], processes) * 100


def _megabytes(field: str, *processes: str) -> Value:
    return lambda row: _sum(row[field], processes)


def _sum(values: Mapping[str, float], names: Sequence[str]) -> float:
    return sum(values[name] for name in names or values)


def _of_both(value: Callable[..., Value], *arguments: str) -> dict[str, Value]:
    return {name: value(*arguments, name) for name in (SERVER, MANAGER)}


def _microseconds(name: str) -> Value:
    return lambda row: float(row["microseconds"][name])


ALL: Final = "Kubernetes, all processes"
ON_NODES: Final = f"{PODS_PER_NODE_RUN:,} pods"
ON_PODS: Final = f"on {NODES_PER_POD_RUN:,} nodes"
MEMORY: Final = "memory, MB"
REQUESTS: Final = (GET, PAGE, SELECTOR, MERGE_PATCH, CREATE_AND_DELETE)


def _of_deployment(section: str, *, cpu: str, time: str, memory: str, idle: str) -> dict[str, Picture]:
    """Return the pictures of what a Deployment costs, which have these titles."""
    return {
        f"{section}-cpu": Picture(
            section,
            cpu,
            "CPU time from the creation of a pod until it is ready, ms",
            _of_both(_cpu_per_pod),
            {ALL: _cpu_per_pod()},
        ),
        f"{section}-time": Picture(
            section,
            time,
            "time, s",
            {name: _seconds(step) for step, name in STEPS.items()},
            {"Kubernetes, all ready": _seconds("up")},
            axes=Axes.LOGARITHMIC,
        ),
        f"{section}-memory": Picture(
            section,
            memory,
            MEMORY,
            _of_both(_megabytes, "megabytes"),
            {ALL: _megabytes("megabytes")},
            axes=Axes.LINEAR,
        ),
        f"{section}-idle": Picture(
            section,
            idle,
            "share of one core, %",
            _of_both(_idle),
            {ALL: _idle()},
            axes=Axes.LINEAR,
        ),
    }


PICTURES: Final = {
    "nodes-start": Picture(
        NODES,
        "Until all nodes are ready",
        "time from the server's first response, s",
        {"mockube": _seconds("start")},
        axes=Axes.LINEAR,
    ),
    **_of_deployment(
        NODES,
        cpu=f"The cost of one of {ON_NODES}, by the number of nodes",
        time=f"A Deployment of {ON_NODES}, by the number of nodes",
        memory=f"Memory with nodes and {ON_NODES}",
        idle=f"The cost of an idle cluster with {ON_NODES}",
    ),
    **_of_deployment(
        PODS,
        cpu=f"The cost of one of many pods {ON_PODS}",
        time=f"A Deployment of many pods {ON_PODS}",
        memory=f"Memory with pods {ON_PODS}",
        idle=f"The cost of an idle cluster {ON_PODS}",
    ),
    "watchers-cpu": Picture(
        WATCHERS,
        "The cost of a change that many clients watch",
        "CPU time of the server for one creation, ms",
        {"server": lambda row: float(row["milliseconds"])},
        axes=Axes.LOGARITHMIC,
    ),
    "watchers-memory": Picture(
        WATCHERS,
        "Memory with watchers",
        MEMORY,
        {"server": lambda row: float(row["megabytes"])},
        axes=Axes.LINEAR,
    ),
    "objects-requests": Picture(
        OBJECTS,
        "A request beside many stored objects",
        "CPU time of the server, µs",
        {name: _microseconds(name) for name in REQUESTS},
        axes=Axes.LOGARITHMIC,
    ),
    "objects-list": Picture(
        OBJECTS,
        "The start of a list of all objects",
        "time until the first byte, ms",
        {"server": lambda row: row["list_start"] * 1e3},
        axes=Axes.LOGARITHMIC,
    ),
    "objects-start": Picture(
        OBJECTS,
        "The start from a data folder",
        "time until the server is ready, s",
        {"server": lambda row: float(row["start_seconds"])},
        axes=Axes.LINEAR,
    ),
    "objects-memory": Picture(
        OBJECTS,
        "Memory with stored objects",
        MEMORY,
        {"server": lambda row: float(row["megabytes"])},
        axes=Axes.LINEAR,
    ),
    "decisions": Picture(
        DECISIONS,
        "The cost of a decision of the scheduler, by the number of nodes",
        "CPU time of a decision, µs",
        {name: _microseconds(name) for name in DECIDED_PODS},
    ),
}


def charts(results: Results) -> Iterator[tuple[str, Chart]]:
    """Yield the charts of the sections that were measured, with their names."""
    machines = results.get(MACHINES, {})
    for name, picture in PICTURES.items():
        other_section = KUBERNETES + picture.section
        own = [*_curves(picture, results.get(picture.section, ()), picture.values)]
        others = [*_curves(picture, results.get(other_section, ()), picture.kubernetes, is_other=True)]
        if own or others:
            yield (
                name,
                Chart(
                    picture.title,
                    SIZES[picture.section].name,
                    picture.y,
                    [*own, *others],
                    picture.axes,
                    _note(
                        machines[picture.section] if own else None,
                        machines[other_section] if others else None,
                    ),
                ),
            )


def _note(own: Row | None, other: Row | None) -> str:
    """Return what a reader of figures has to know: the machine, and how busy it was before each measurement."""
    notes = [f"{_when(own)}, {own['cpus']} CPUs, {own['machine']}, Python {own['python']}"] if own else []
    notes += [f"Kubernetes: {_when(other)}"] if other else []
    return "; ".join(notes)


def _when(machine: Row) -> str:
    return f"{machine['date'].partition(' ')[0]}, load {machine['load']} at the start"


def _curves(
    picture: Picture, rows: Sequence[Row], values: Mapping[str, Value], *, is_other: bool = False
) -> Iterator[Curve]:
    if rows:
        for name, value in values.items():
            yield Curve(name, [(row[SIZES[picture.section].field], value(row)) for row in rows], is_other)


def write(results: Results, folder: Path) -> None:
    for name, chart in charts(results):
        (folder / f"{name}.svg").write_text(draw(chart))
