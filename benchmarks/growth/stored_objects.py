"""One request of each kind beside many stored objects, and the start of a server that finds them in its data folder."""

import asyncio
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from benchmarks.api_load import HOST, _free_port
from mockube.apiserver.store import open_durable
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.kv import Put, Range, Txn

from .client import Client
from .processes import SERVER, ControlPlane, cpu_seconds, megabytes, require_running, running, wait_until
from .workloads import Row

PODS = "/api/v1/namespaces/default/pods"
KEYS = b"/registry/pods/default/"
TOKEN = "benchmark"
SELECTED = 10
"""How many of the objects the selector matches."""
BATCH = 100
"""Objects that are stored in one transaction."""
MIN_CPU, MIN_REQUESTS = 0.3, 20
"""A request is repeated until the server has used this CPU time, because Linux counts it in steps of 10 ms."""
LISTS = 7
GET, PAGE, SELECTOR = "get", "page of 50", f"selector, {SELECTED} match"
MERGE_PATCH, CREATE_AND_DELETE = "merge patch", "create and delete"


def measure_objects(size: int) -> Row:
    """Measure requests beside a number of stored pods."""
    with TemporaryDirectory() as path:
        folder = Path(path)
        fill(folder, size)
        began = time.perf_counter()
        with server(folder) as plane:
            pid = plane.pids[SERVER]
            row: Row = {
                "objects": size,
                "start_seconds": round(time.perf_counter() - began, 2),
                "start_cpu": cpu_seconds(pid),
                "megabytes": megabytes(pid),
                "list_start": min(_list_start(plane.client) for _ in range(LISTS)),
                "microseconds": {
                    name: round(cpu_of_request(pid, send) * 1e6, 1)
                    for name, send in requests(plane.client, size).items()
                },
            }
    print(
        f"  {size} objects: start {row['start_seconds']} s, {row['megabytes']} MB, list {row['list_start']} s,"
        f" {row['microseconds']} µs",
        flush=True,
    )
    return row


def fill(folder: Path, size: int) -> None:
    """Make a data folder with pods, which are copies of one that a server has stored."""
    with server(folder) as plane:
        plane.client.call(
            "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
        )
        plane.client.send("POST", PODS, pod("template"))
        uid = plane.client.call("GET", f"{PODS}/template")["metadata"]["uid"].encode()
    asyncio.run(_store_copies(folder, size, uid))


async def _store_copies(folder: Path, size: int, uid: bytes) -> None:
    store = await open_durable(data_folder(folder), RealClock(), disk=Disk())
    template = (await store.range(Range(key=KEYS + b"template"))).kvs[0].value

    def copy(number: int) -> Put:
        name = f"pod-{number}".encode()
        value = template.replace(b'"template"', b'"%s"' % name).replace(uid, uid[:-8] + b"%08x" % number)
        if number % max(1, size // SELECTED) == 0:
            value = value.replace(b'"number":"other"', b'"number":"some"')
        return Put(key=KEYS + name, value=value)

    batches = [range(first, min(first + BATCH, size)) for first in range(0, size, BATCH)]
    # Writes that wait together are flushed to disk together.
    await asyncio.gather(*(store.txn(Txn(then=tuple(map(copy, numbers)))) for numbers in batches))
    await store.close()


def data_folder(folder: Path) -> Path:
    return folder / "data"


@contextmanager
def server(folder: Path) -> Iterator[ControlPlane]:
    """Run an API server on a data folder; yield when it is ready. It does not wait for the disk, whose speed varies."""
    port, tokens = _free_port(), folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    flags = (f"--secure-port={port}", f"--cert-dir={folder}", f"--token-auth-file={tokens}", "--fsync=false")
    program = (sys.executable, "-m", "mockube.apiserver", f"--data-dir={data_folder(folder)}", *flags)
    with running(*program, folder=folder) as process:
        client = Client(f"https://{HOST}:{port}", TOKEN)

        def is_ready() -> bool:
            require_running(process, folder)
            return client.is_ready()

        wait_until(is_ready, "the start", pause=0.02)
        yield ControlPlane(client, {SERVER: process.pid})


def pod(name: str) -> bytes:
    """Return a pod with what most pods have."""
    container = {
        "name": "web",
        "image": "web:1",
        "env": [{"name": f"SETTING_{at}", "value": "value"} for at in range(4)],
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    labels = {"app": "web", "number": "other"}
    spec = {"automountServiceAccountToken": False, "containers": [container]}
    return orjson.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
    )


def requests(client: Client, size: int) -> dict[str, Callable[[], object]]:
    """Return a function for each kind of request that sends one. None changes the number of objects for the others."""
    numbers = itertools.count()

    def path() -> str:
        return f"{PODS}/pod-{next(numbers) * 7919 % size}"

    def create_and_delete() -> None:
        name = f"new-{next(numbers)}"
        client.send("POST", PODS, pod(name))
        client.send("DELETE", f"{PODS}/{name}", b'{"gracePeriodSeconds": 0}')

    def merge_patch() -> None:
        change = {"metadata": {"annotations": {"number": str(next(numbers))}}}
        client.send("PATCH", path(), orjson.dumps(change), "merge-patch+json")

    return {
        GET: lambda: client.send("GET", path()),
        PAGE: lambda: client.send("GET", f"{PODS}?limit=50"),
        SELECTOR: lambda: client.send("GET", "/api/v1/pods?labelSelector=number%3Dsome"),
        MERGE_PATCH: merge_patch,
        CREATE_AND_DELETE: create_and_delete,
    }


def cpu_of_request(pid: int, send: Callable[[], object]) -> float:
    send()
    began, count = cpu_seconds(pid), 0
    while count < MIN_REQUESTS or cpu_seconds(pid) - began < MIN_CPU:
        send()
        count += 1
    return (cpu_seconds(pid) - began) / count


def _list_start(client: Client) -> float:
    """Return the seconds until the first byte of a list of all pods, whose rest is read, too."""
    connection = client.connect()
    connection.connect()
    began = time.perf_counter()
    connection.request("GET", "/api/v1/pods", None, client.headers("application/json"))
    response = connection.getresponse()
    response.read(1)
    passed = time.perf_counter() - began
    while response.read(1 << 20):
        pass
    connection.close()
    return round(passed, 4)
