"""Measure the CPU time of API server writes, per stage of a Pod creation; with `wrk`, also requests/s.

    python benchmarks/api.py

Times are CPU times, the best of several rounds, so that other load of the machine matters little. Each
stage is called separately, with the output of the stage before it. Its code is then in the processor's
caches, unlike in a whole write: that, and the code between the stages, is "the rest".
"""

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson
import uvloop

from benchmarks import api_load
from benchmarks.decode import COMPACT, POD
from mockube.apimachinery.tree import Tree
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.body import decode_as, read_object
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.patch import patch
from mockube.apiserver.registry.request_context import (
    AdmissionAttributes,
    Body,
    Operation,
    RequestContext,
    write_options,
)
from mockube.apiserver.storage.stored_object import StoredObject, canonical
from mockube.apiserver.user import User
from mockube.apiserver.wire.parse import parse
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put, Txn
from tests.support.server.rows import catalog

ROUNDS, TIMES = 7, 300
CLIENTS = 16
"""Number of concurrent whole writes."""
ADMIN = User(name="admin", groups=("system:masters",))
ROWS = catalog()
PODS = ROWS["", "v1", "pods"]


MAP: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"key": "v" * 800}}
DEPLOYMENT: Tree = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {},
    "spec": {
        "selector": {"matchLabels": {"app": "bench"}},
        "template": {"metadata": {"labels": {"app": "bench"}}, "spec": POD["spec"]},
    },
}
ONE = "one"
"""The name of the patched objects."""


def request_context(resource: str, body: Tree, *, group: str = "", language: str = "") -> RequestContext:
    """Return a create request, or a patch request of the given patch type."""
    row = ROWS[group, "v1", resource]
    return RequestContext(
        verb="patch" if language else "create",
        resource=row,
        namespace="default" if row.namespaced else "",
        name=ONE if language else "",
        body=Body(
            data=orjson.dumps(body),
            media_type=f"application/{language}+json" if language else "application/json",
        ),
        user=ADMIN,
        user_agent="benchmark",
    )


def with_name(tree: Tree, name: str) -> Tree:
    return tree | {"metadata": {**tree["metadata"], "name": name}}


async def microseconds(
    make: Callable[[int], Any], work: Callable[[Any], Awaitable[Any] | Any], *, at_once: int = 1
) -> float:
    """Return the CPU time of one piece of work; its input is created before the measurement."""

    async def work_off(pieces: Iterator[Any]) -> None:
        for piece in pieces:
            result = work(piece)
            if result is not None and hasattr(result, "__await__"):
                await result

    best = float("inf")
    for turn in range(ROUNDS):
        pieces = iter([make(turn * TIMES + offset) for offset in range(TIMES)])
        started = time.process_time()
        await asyncio.gather(*(work_off(pieces) for _ in range(at_once)))
        best = min(best, time.process_time() - started)
    return best / TIMES * 1e6


async def stages(server: ApiServer) -> dict[str, float]:
    backend, request = server.registry, request_context("pods", POD)
    options = write_options(request, "CreateOptions")
    bare: Tree = {"kind": "Pod", "apiVersion": "v1"}
    decoded = orjson.dumps(bare | decode_as(backend, POD).tree)
    tree = read_object(backend, request, options)
    metadata.set_system_fields(tree, request, now=backend.clock.now(), random=backend.random)
    read = orjson.dumps(tree)
    admitted = _attributes(request, orjson.loads(read))
    await backend.admission.mutate(backend, admitted)
    stored = (await create(backend, request_context("pods", with_name(POD, "stored")))).stored
    assert stored is not None
    whole, ready = stored.value, orjson.loads(stored.value)

    def of(text: bytes) -> Callable[[int], Tree]:
        return lambda _: orjson.loads(text)

    async def admit(tree: Tree) -> None:
        attributes = _attributes(request, tree)
        await backend.admission.mutate(backend, attributes)
        await backend.admission.validate(backend, attributes)

    table: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
        "read the JSON": (lambda _: COMPACT, lambda data: parse(data, "application/json")),
        "decode": (of(COMPACT), lambda tree: decode_as(backend, tree, text=COMPACT, strict=True)),
        "defaults": (of(decoded), lambda tree: backend.scheme.rules.default("v1", "Pod", tree)),
        "managedFields": (of(read), lambda tree: metadata.manage_new(backend, request, tree, options)),
        "admission": (of(read), admit),
        "validation": (of(whole), lambda tree: backend.scheme.rules.check_create(PODS, tree)),
        "encode": (lambda _: ready, canonical),
        "store": (lambda number: Txn(then=(Put(key=b"/bench/%d" % number, value=whole),)), backend.kv.txn),
        "answer": (lambda number: StoredObject(b"", whole, number + 1), lambda stored: stored.text),
    }
    return {name: await microseconds(*stage) for name, stage in table.items()}


def _attributes(request: RequestContext, tree: Tree) -> AdmissionAttributes:
    return AdmissionAttributes(operation=Operation.CREATE, context=request, name="bench", object=tree)


def writes() -> dict[str, Callable[[int], RequestContext]]:
    """Return whole writes, each with unique data."""

    def annotation(number: int) -> Tree:
        return {"metadata": {"annotations": {"number": str(number)}}}

    return {
        "create a Pod": lambda number: request_context("pods", with_name(POD, f"pod-{number}")),
        "create a ConfigMap": lambda number: request_context("configmaps", with_name(MAP, f"map-{number}")),
        "merge patch of a ConfigMap": lambda number: request_context(
            "configmaps", {"data": {"number": str(number)}}, language="merge-patch"
        ),
        "strategic merge patch of a Deployment": lambda number: request_context(
            "deployments", annotation(number), group="apps", language="strategic-merge-patch"
        ),
    }


async def main() -> None:
    async with ApiServer(MemoryStore(clock=RealClock()), ServerEnvironment(trust=Trust(tokens={}))) as server:
        backend = server.registry
        for resource in ("namespaces", "serviceaccounts"):
            await create(backend, request_context(resource, {"metadata": {"name": "default"}}))
        await create(backend, request_context("configmaps", with_name(MAP, ONE)))
        await create(backend, request_context("deployments", with_name(DEPLOYMENT, ONE), group="apps"))
        gc.freeze()  # as the server does when it is ready

        async def carry_out(context: RequestContext) -> None:
            await (create if context.verb == "create" else patch)(backend, context)

        report = await stages(server)
        totals = {
            name: await microseconds(make, carry_out, at_once=CLIENTS) for name, make in writes().items()
        }
    total = totals["create a Pod"]
    report["the rest"] = total - sum(report.values())
    print("A Pod is created, in µs of the processor, without HTTP:\n")
    for name, figure in (report | {"all of it": total}).items():
        print(f"{name:<16}{figure:>8.1f}{figure / total:>8.0%}")
    print("\nWhole writes, in the same way:\n")
    for name, figure in totals.items():
        print(f"{name:<38}{figure:>8.1f}")
    await api_load.report()


if __name__ == "__main__":
    uvloop.run(main())
