"""Measure the CPU time of decoding: the index of types, the first object of a kind, and later objects.

    python benchmarks/decode.py

Times are CPU times, the best of several rounds, so that other load of the machine matters little.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson

from mockube.apimachinery.schema import builtin
from mockube.apiserver.schema.decode import Decoder, is_too_deep

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bench", "labels": {"app": "bench", "tier": "x"}},
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "c",
                "image": "nginx:1.25",
                "ports": [{"containerPort": 80}],
                "env": [{"name": f"E{number}", "value": "v" * 20} for number in range(10)],
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            }
        ],
    },
}
COMPACT = orjson.dumps(POD)
INDENTED = orjson.dumps(POD, option=orjson.OPT_INDENT_2)
UNKNOWN = POD | {"notAField": 1}


def microseconds(work: Callable[[], object], *, times: int = 2000, rounds: int = 5) -> float:
    def once() -> float:
        started = time.process_time()
        for _ in range(times):
            work()
        return time.process_time() - started

    return min(once() for _ in range(rounds)) / times * 1e6


def main() -> None:
    schemas, decoder = builtin.load(), Decoder()
    pod = schemas.kind("v1", "Pod")
    assert pod is not None
    report = {
        "index of all types": microseconds(builtin.load, times=20),
        "first pod": microseconds(
            lambda: Decoder().decode(builtin.load().definition(pod.name), POD), times=5
        ),
        "pod": microseconds(lambda: decoder.decode(pod, POD, strict=False)),
        "pod, strict": microseconds(lambda: decoder.decode(pod, POD, text=COMPACT)),
        "pod, strict, indented": microseconds(lambda: decoder.decode(pod, POD, text=INDENTED)),
        "pod with an unknown field, strict": microseconds(lambda: decoder.decode(pod, UNKNOWN), times=500),
        "depth of 100 pods": microseconds(lambda: is_too_deep(COMPACT * 100), times=100),
    }
    for name, figure in report.items():
        print(f"{name:<36}{figure:>10.1f} µs")


if __name__ == "__main__":
    main()
