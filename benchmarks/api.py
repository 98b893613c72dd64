"""What a Pod costs the API server to create, stage by stage; and, if there is `wrk`, how many requests a second it answers.

    python benchmarks/api.py

Times are of the processor, the best of several rounds, so that what else the machine does counts for little. Each
stage is called by itself, with what the stage before it made; what is between them is the rest.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson

from apimachinery.clock import RealClock
from apiserver.app import ApiServer, catalog
from apiserver.authn.wiring import Trust
from apiserver.rest import managed
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.body import decode_as, read_object
from apiserver.rest.call import Body, Call, User
from apiserver.rest.create import create
from apiserver.rest.options import write_options
from apiserver.storage.stored import Stored, Tree, canonical
from apiserver.wire.parse import parse
from benchmarks import api_load
from benchmarks.decode import COMPACT, POD
from etcd.embedded.memory import MemoryStore
from etcd.kv import Put, Txn

ROUNDS, TIMES = 7, 300
ADMIN = User(name="admin", groups=("system:masters",))
ROWS = catalog()
PODS = ROWS["", "v1", "pods"]


def call(resource: str, body: Tree) -> Call:
    row = ROWS["", "v1", resource]
    return Call(
        verb="create",
        resource=row,
        namespace="default" if row.namespaced else "",
        body=Body(data=orjson.dumps(body), media_type="application/json"),
        user=ADMIN,
        user_agent="benchmark",
    )


def named(number: int) -> Tree:
    return POD | {"metadata": {**POD["metadata"], "name": f"pod-{number}"}}


async def microseconds(make: Callable[[int], Any], work: Callable[[Any], Awaitable[Any] | Any]) -> float:
    """What one piece of work costs; what it is done with is made beforehand."""
    best, number = float("inf"), 0
    for _ in range(ROUNDS):
        pieces = [make(number + offset) for offset in range(TIMES)]
        number += TIMES
        started = time.process_time()
        for piece in pieces:
            done = work(piece)
            if done is not None and hasattr(done, "__await__"):
                await done
        best = min(best, time.process_time() - started)
    return best / TIMES * 1e6


async def stages(server: ApiServer) -> dict[str, float]:
    backend, request = server.backend, call("pods", POD)
    options = write_options(request, "CreateOptions")
    bare: Tree = {"kind": "Pod", "apiVersion": "v1"}
    decoded = orjson.dumps(bare | decode_as(backend, POD).tree)
    read = orjson.dumps(read_object(backend, request, options))
    admitted = _attributes(request, orjson.loads(read))
    await backend.admission.mutate(backend, admitted)
    stored = (await create(backend, call("pods", named(-1)))).stored
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
        "defaults": (of(decoded), lambda tree: backend.rules.default("v1", "Pod", tree)),
        "managedFields": (of(read), lambda tree: managed.on_create(backend, request, tree, options)),
        "admission": (of(read), admit),
        "validation": (of(whole), lambda tree: backend.rules.check_create(PODS, tree)),
        "encode": (lambda _: ready, canonical),
        "store": (lambda number: Txn(then=(Put(key=b"/bench/%d" % number, value=whole),)), backend.kv.txn),
        "answer": (lambda number: Stored(b"", whole, number + 1), lambda made: made.text),
    }
    return {name: await microseconds(*stage) for name, stage in table.items()}


def _attributes(request: Call, tree: Tree) -> Attributes:
    return Attributes(operation=Operation.CREATE, call=request, name="bench", object=tree)


async def main() -> None:
    async with ApiServer(MemoryStore(clock=RealClock()), trust=Trust(tokens={})) as server:
        for resource in ("namespaces", "serviceaccounts"):
            await create(server.backend, call(resource, {"metadata": {"name": "default"}}))
        report = await stages(server)
        total = await microseconds(
            lambda number: call("pods", named(number)), lambda made: create(server.backend, made)
        )
    report["the rest"] = total - sum(report.values())
    print("A Pod is created, in µs of the processor, without HTTP:\n")
    for name, figure in (report | {"all of it": total}).items():
        print(f"{name:<16}{figure:>8.1f}{figure / total:>8.0%}")
    await api_load.report()


if __name__ == "__main__":
    asyncio.run(main())
