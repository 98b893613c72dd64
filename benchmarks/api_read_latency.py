"""Measure the latency of reading one object during repeated reads of a large list, per list format.

    python benchmarks/api_read_latency.py

Work on a list without a yield blocks all other requests. `wrk` reads the lists over TLS, and the server is
a separate process; the machine should have one CPU for the server and one for the rest.
"""

import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import aiohttp
import uvloop

from benchmarks.api_load import AUTHORIZATION, FOLDER, api_server, connector
from benchmarks.decode import POD

PODS, READERS, SECONDS, PAUSE = 1500, 4, 5, 0.002
COLLECTION = f"{FOLDER}/pods"
FORMS = {
    "nothing": None,
    "JSON": {"Accept": "application/json", "Accept-Encoding": "identity"},
    "JSON, in gzip": {"Accept": "application/json", "Accept-Encoding": "gzip"},
    "a table": {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    "protobuf": {"Accept": "application/vnd.kubernetes.protobuf"},
    "metadata in protobuf": {
        "Accept": "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    },
}


async def fill(session: aiohttp.ClientSession) -> None:
    account = {"metadata": {"name": "default"}}
    async with session.post(f"{FOLDER}/serviceaccounts", json=account) as answer:
        assert answer.status in (201, 409), await answer.text()
    for number in range(PODS):
        named = POD | {"metadata": {**POD["metadata"], "name": f"pod-{number}"}}
        async with session.post(COLLECTION, json=named) as answer:
            assert answer.status == 201, await answer.text()


async def read(session: aiohttp.ClientSession, path: str) -> float:
    """Return the seconds until the whole response is read."""
    started = time.perf_counter()
    async with session.get(path) as answer:
        assert answer.ok, await answer.text()
        await answer.read()
    return time.perf_counter() - started


async def waits(session: aiohttp.ClientSession, url: str, form: dict[str, str] | None) -> list[float]:
    """Return the latencies of the reads of one object, in seconds, shortest first."""
    latencies: list[float] = []

    async def one_by_one() -> None:
        while True:
            latencies.append(await read(session, f"{COLLECTION}/pod-0"))
            await asyncio.sleep(PAUSE)

    tasks = [asyncio.create_task(one_by_one()) for _ in range(READERS)]
    await (asyncio.sleep(SECONDS) if form is None else lists(f"{url}{COLLECTION}", form))
    for task in tasks:
        task.cancel()
    return sorted(latencies)


async def lists(url: str, form: dict[str, str]) -> None:
    """Read the list repeatedly for SECONDS, from another process."""
    headers = [f"{name}: {value}" for name, value in (AUTHORIZATION | form).items()]
    process = await asyncio.create_subprocess_exec(
        *("wrk", "-t1", "-c1", f"-d{SECONDS}s"), *(part for header in headers for part in ("-H", header)), url,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output = (await process.communicate())[0].decode()
    assert "Non-2xx" not in output, output


async def main() -> None:
    with TemporaryDirectory() as folder:
        async with (
            api_server(Path(folder)) as url,
            aiohttp.ClientSession(url, connector=connector(), headers=AUTHORIZATION) as session,
        ):
            await fill(session)
            print(f"{'ms, beside a list of ' + str(PODS) + ' Pods as':<40}{'half':>8}{'99 %':>8}{'reads':>8}")
            for name, form in FORMS.items():
                latencies = await waits(session, url, form)
                half, maximum = latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100]
                print(f"{name:<40}{half * 1e3:>8.1f}{maximum * 1e3:>8.1f}{len(latencies):>8}")


if __name__ == "__main__":
    uvloop.run(main())
