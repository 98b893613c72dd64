"""The CPU time of the scheduler's decision for one of many pods with the same specification, without requests."""

import gc
import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

from mockube.apimachinery.randomness import SeededRandom, fraction
from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.pod_class import PodClasses
from tests.support.controllers.scheduler_objects import (
    HOST,
    apart,
    best_of,
    info,
    node,
    pod,
    preferred,
    snapshot_of,
    spread_constraint,
)

from .workloads import Row

WEB = {"app": "web"}
PODS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "spread over zones": {"topologySpreadConstraints": [spread_constraint()]},
    "preferred anti-affinity": {"affinity": apart(preferred(100, HOST, WEB))},
}
"""Fields of the pods by their name in the curves."""
ROUNDS, DECISIONS = 5, 400


def measure_decisions(size: int) -> Row:
    """Measure decisions for a number of nodes."""
    costs = {
        name: round(min(itertools.islice(rounds(size, fields), ROUNDS)) * 1e6, 1)
        for name, fields in PODS.items()
    }
    print(f"  {size} nodes: {costs} µs", flush=True)
    return {"nodes": size, "microseconds": costs}


def rounds(nodes: int, fields: Mapping[str, Any]) -> Iterator[float]:
    """Yield the CPU time of a decision in seconds, without end, each time with more pods on the nodes."""
    cluster, random, numbers = SchedulerCache(), SeededRandom(nodes), itertools.count()
    for number in range(nodes):
        cluster.set_node(
            node(f"node-{number}", zone="abc"[number % 3], cpu="32", memory="256Gi", pods="1100")
        )
    classes = PodClasses(cluster)

    def decide() -> None:
        tree = pod(f"web-{next(numbers)}", labels=WEB, requests={"cpu": "10m", "memory": "16Mi"}, **fields)
        tried, state = info(tree), snapshot_of(cluster)
        pod_class = classes.find(tried, state)
        assert pod_class is not None
        best = best_of(pod_class, state)
        cluster.assign_pod(tried, best[int(fraction(random) * len(best))].name)

    decide()  # judges every node once
    while True:
        gc.collect()
        began = time.process_time()
        for _ in range(DECISIONS):
            decide()
        yield (time.process_time() - began) / DECISIONS
