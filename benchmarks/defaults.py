"""Measure the CPU time of defaulting: the first object of a kind, and later objects.

    python benchmarks/defaults.py

Times are CPU times, the best of several rounds, so that other load of the machine matters little. Each
object is defaulted once, as a second call would change nothing.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson
from decode import POD

from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds.kind_rules import Defaulter
from mockube.apiserver.schema.decode import Decoder
from mockube.component_base.clock import SteppedClock

DEPLOYMENT = {"spec": {"template": {"metadata": {"labels": {"app": "bench"}}, "spec": POD["spec"]}}}

OBJECTS = (
    ("v1", "Pod", POD),
    ("apps/v1", "Deployment", DEPLOYMENT),
    ("v1", "Service", {"spec": {"ports": [{"port": 80}], "selector": {"app": "bench"}}}),
    ("v1", "ConfigMap", {"data": {"a": "b"}}),
)


def microseconds(defaulter: Defaulter, api_version: str, kind: str, text: bytes, *, times: int) -> float:
    trees = [orjson.loads(text) for _ in range(times)]
    started = time.process_time()
    for tree in trees:
        defaulter.default_object(api_version, kind, tree)
    return (time.process_time() - started) / times * 1e6


def main() -> None:
    schemas, decoder, clock = builtin.load(), Decoder(), SteppedClock()
    for api_version, kind, tree in OBJECTS:
        struct = schemas.kind(api_version, kind)
        assert struct is not None
        text = orjson.dumps(decoder.decode(struct, tree).tree)
        defaulter = Defaulter(schemas, clock=clock)
        first = microseconds(defaulter, api_version, kind, text, times=1)
        after = min(microseconds(defaulter, api_version, kind, text, times=100) for _ in range(200))
        print(f"{kind:<16}{first:>10.1f} µs for the first {after:>10.1f} µs for each after it")


if __name__ == "__main__":
    main()
