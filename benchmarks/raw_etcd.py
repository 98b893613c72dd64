"""Baseline for the etcd client: the same creates with only aiohttp and orjson."""

import asyncio
import base64
import time

import aiohttp
import orjson


async def measure(url: str, value: bytes, *, amount: int, clients: int) -> dict[str, float]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        alone = await _rate(session, url, value, first=0, count=amount // 10, clients=1)
        together = await _rate(session, url, value, first=amount, count=amount, clients=clients)
    return {"raw creates/s, 1 client": alone, f"raw creates/s, {clients} clients": together}


async def _rate(
    session: aiohttp.ClientSession, url: str, value: bytes, *, first: int, count: int, clients: int
) -> float:
    text = base64.b64encode(value).decode()

    async def create(number: int) -> None:
        key = base64.b64encode(b"/raw/%07d" % number).decode()
        compare = {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": 0}
        put = {"request_put": {"key": key, "value": text}}
        body = orjson.dumps({"compare": [compare], "success": [put]})
        async with session.post(f"{url}/v3/kv/txn", data=body) as answer:
            assert orjson.loads(await answer.read())["succeeded"]

    async def client(offset: int) -> None:
        for number in range(first + offset, first + count, clients):
            await create(number)

    started = time.perf_counter()
    await asyncio.gather(*map(client, range(clients)))
    return count / (time.perf_counter() - started)
