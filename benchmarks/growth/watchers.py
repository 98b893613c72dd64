"""Many watchers of one kind: what a change costs the server, and how much memory a watcher needs."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from .client import Client
from .processes import SERVER, cpu_seconds, megabytes
from .stored_objects import server
from .workloads import Row

MAPS = "/api/v1/namespaces/default/configmaps"
CHANGES = 300
AT_ONCE = 10
"""How many changes are made at a time, before all watchers have to have received them."""


def measure_watchers(size: int) -> Row:
    """Measure creations that a number of clients watch."""
    return asyncio.run(_measure(size))


async def _measure(size: int) -> Row:
    with TemporaryDirectory() as folder, server(Path(folder)) as plane:
        pid = plane.pids[SERVER]
        connector = aiohttp.TCPConnector(ssl=False, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        headers = plane.client.headers("application/json")
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
            empty = megabytes(pid)
            watchers = [_Watcher() for _ in range(size)]
            tasks = [asyncio.create_task(one.run(session, plane.client)) for one in watchers]
            await asyncio.gather(*(one.started.wait() for one in watchers))
            memory, began = megabytes(pid), cpu_seconds(pid)
            for number in range(0, CHANGES, AT_ONCE):
                await asyncio.gather(
                    *(_create(session, plane.client, name) for name in range(number, number + AT_ONCE))
                )
                await asyncio.gather(*(one.wait_received(number + AT_ONCE) for one in watchers))
            used = cpu_seconds(pid) - began
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    row: Row = {
        "watchers": size,
        "milliseconds": round(used / CHANGES * 1e3, 3),
        "megabytes_empty": empty,
        "megabytes": memory,
    }
    print(f"  {size} watchers: a change uses {row['milliseconds']} ms, the server {memory} MB", flush=True)
    return row


class _Watcher:
    """Counts the events of a watch; an event is a line."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self._count = 0
        self._expected = 0
        self._received = asyncio.Event()

    async def run(self, session: aiohttp.ClientSession, client: Client) -> None:
        async with session.get(f"{client.url}{MAPS}?watch=true&resourceVersion=0") as response:
            assert response.status == 200, await response.text()
            self.started.set()
            async for data in response.content.iter_any():
                self._count += data.count(b"\n")
                if self._count >= self._expected:
                    self._received.set()

    async def wait_received(self, count: int) -> None:
        self._expected = count
        if self._count < count:
            self._received.clear()
            await self._received.wait()


async def _create(session: aiohttp.ClientSession, client: Client, number: int) -> None:
    body = {"metadata": {"name": f"map-{number}"}, "data": {"key": "v" * 800}}
    async with session.post(client.url + MAPS, json=body) as response:
        assert response.status == 201, await response.text()
