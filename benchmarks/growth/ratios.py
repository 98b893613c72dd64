"""Check that cost does not grow with the size of the cluster: `python -m benchmarks.growth.ratios`.

Compares CPU times of one run, so that the speed of the machine does not matter. Both sizes are measured in turn, and the least
of several times counts, because other work makes a time longer and never shorter. A ratio over its limit is measured again.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from . import decisions, stored_objects, workloads
from .processes import SERVER, ControlPlane, mockube_up

ROUNDS, ATTEMPTS = 3, 4
NODES, DECISION_NODES, OBJECTS = (10, 1_000), (100, 5_000), (1_000, 100_000)
POD_LIMIT, DECISION_LIMIT, REQUEST_LIMIT = 1.4, 2.0, 1.5
PODS = 500
IDLE_SECONDS = 4.0
WITHOUT_EVENTS = "--simulate-kubelet-details=false"
"""The Events of 1,000 nodes are written at a limited rate, for two minutes."""

Cost = Callable[[], float]
"""Returns seconds of CPU time."""


class Comparison(NamedTuple):
    """What the same costs at a small and at a large size."""

    name: str
    limit: float
    """The largest ratio of the second cost to the first."""
    costs: tuple[Cost, Cost]


def holds(comparison: Comparison) -> bool:
    """Print the ratio of the costs, and return whether it is within the limit."""
    minima = [float("inf"), float("inf")]
    for attempt in range(1, ROUNDS * ATTEMPTS + 1):
        minima = [min(least, cost()) for least, cost in zip(minima, comparison.costs, strict=True)]
        if attempt % ROUNDS == 0 and minima[1] <= comparison.limit * minima[0]:
            break
    ratio = minima[1] / minima[0]
    is_within = ratio <= comparison.limit
    small, large = (f"{least * 1e6:,.0f}" for least in minima)
    print(
        f"{comparison.name:<76}{small:>8}{large:>9}{ratio:>7.2f}{comparison.limit:>7.1f}{'' if is_within else ' !'}",
        flush=True,
    )
    return is_within


@contextmanager
def decision_costs() -> Iterator[list[Comparison]]:
    names = " and ".join(f"{size:,}" for size in DECISION_NODES)
    yield [
        Comparison(
            f"decision of the scheduler, {name}, at {names} nodes",
            DECISION_LIMIT,
            _both(*(decisions.rounds(size, fields).__next__ for size in DECISION_NODES)),
        )
        for name, fields in decisions.PODS.items()
    ]


@contextmanager
def request_costs() -> Iterator[list[Comparison]]:
    with ExitStack() as stack:
        costs = []
        for size in OBJECTS:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            stored_objects.fill(folder, size)
            plane = stack.enter_context(stored_objects.server(folder))
            requests = stored_objects.requests(plane.client, size)
            costs.append({name: _request_cost(plane, send) for name, send in requests.items()})
        sizes = " and ".join(f"{size:,}" for size in OBJECTS)
        yield [
            Comparison(f"{name}, at {sizes} stored pods", REQUEST_LIMIT, _both(*(one[name] for one in costs)))
            for name in costs[0]
        ]


def _request_cost(plane: ControlPlane, send: Callable[[], object]) -> Cost:
    return lambda: stored_objects.cpu_of_request(plane.pids[SERVER], send)


@contextmanager
def pod_costs() -> Iterator[list[Comparison]]:
    with ExitStack() as stack:
        planes = []
        for size in NODES:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            planes.append(stack.enter_context(mockube_up(size, folder, WITHOUT_EVENTS)))
            workloads.wait_for_nodes(planes[-1], size)
            workloads.create_namespace(planes[-1])
        idle = _idle_shares(planes)
        sizes = " and ".join(f"{size:,}" for size in NODES)
        costs = _both(*(_pod_cost(*pair) for pair in zip(planes, idle, strict=True)))
        yield [Comparison(f"a pod of a Deployment, until it is ready, on {sizes} nodes", POD_LIMIT, costs)]


def _idle_shares(planes: list[ControlPlane]) -> list[float]:
    """Return the share of a core that each control plane uses for its nodes alone: the least of several spans."""
    for plane in planes:
        workloads.settle(plane)
    spans = []
    for _ in range(ROUNDS):
        before, began = [plane.total_cpu_seconds() for plane in planes], time.perf_counter()
        time.sleep(IDLE_SECONDS)
        passed = time.perf_counter() - began
        spans.append(
            [(plane.total_cpu_seconds() - cpu) / passed for plane, cpu in zip(planes, before, strict=True)]
        )
    return [min(shares) for shares in zip(*spans, strict=True)]


def _pod_cost(plane: ControlPlane, idle_share: float) -> Cost:
    """Return a function for the CPU time of a pod, without what the nodes use in the same time."""

    def cost() -> float:
        row = workloads.bring_up(plane, PODS)
        workloads.delete(plane)
        used: float = sum(row["cpu"].values()) - idle_share * row["seconds"]
        return used / PODS

    return cost


def _both(*costs: Cost) -> tuple[Cost, Cost]:
    small, large = costs
    return small, large


def main() -> int:
    began = time.perf_counter()
    print(f"{'CPU time in µs':<76}{'small':>8}{'large':>9}{'ratio':>7}{'limit':>7}")
    results = []
    for comparisons in (decision_costs, request_costs, pod_costs):
        with comparisons() as found:
            results += [holds(one) for one in found]
    failed = results.count(False)
    print(f"{failed} over the limit, in {time.perf_counter() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
