"""Measure requests per second of the API server over TLS, beside a bare aiohttp server.

The bare server shows the minimum cost of Python and aiohttp: it parses the request and returns the same
bytes that the API server returned. Each is a separate process, and `wrk` measures one after the other.
"""

import asyncio
import re
import shutil
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aiohttp
import orjson
import uvloop
from aiohttp import web

ITEMS, SECONDS, CONNECTIONS, THREADS = 1000, 3, 16, 2
HOST, TOKEN = "127.0.0.1", "benchmark"
AUTHORIZATION = {"Authorization": f"Bearer {TOKEN}"}
FOLDER, ONE = "/api/v1/namespaces/default", "/api/v1/namespaces/default/configmaps/item-0"
LABELS = {"app": "bench"}
NAME = "@NAME@"
"""Placeholder in a body for a unique name."""


class Shape(NamedTuple):
    method: str
    path: str
    body: object = None
    media_type: str = "application/json"


def _map(name: str) -> dict[str, object]:
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "v" * 200}}


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": NAME, "labels": LABELS},
    "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "nginx:1.25"}]},
}
CHANGE = {"metadata": {"annotations": {"changed": NAME}}}
SHAPES = {
    "get": Shape("GET", ONE),
    f"list of {ITEMS}": Shape("GET", f"{FOLDER}/configmaps"),
    "selector miss": Shape("GET", f"{FOLDER}/configmaps?labelSelector=app%3Dnone"),
    "page of 50": Shape("GET", f"{FOLDER}/configmaps?limit=50"),
    "create ConfigMap": Shape("POST", f"{FOLDER}/configmaps", _map(NAME)),
    "create Pod": Shape("POST", f"{FOLDER}/pods", POD),
    "merge patch": Shape("PATCH", ONE, CHANGE, "application/merge-patch+json"),
    "strategic patch": Shape("PATCH", ONE, CHANGE, "application/strategic-merge-patch+json"),
    "apply": Shape(
        "PATCH",
        f"{ONE}?fieldManager=bench&force=true",
        {"apiVersion": "v1", "kind": "ConfigMap"} | CHANGE,
        "application/apply-patch+yaml",
    ),
}
"""Measured in this order: lists before creations."""

SCRIPT = """
local threads, asked = 0, 0
function setup(made) made:set("number", threads); threads = threads + 1 end
function request()
  asked = asked + 1
  local name = "%s-" .. number .. "-" .. asked
  return wrk.format("%s", "%s", wrk.headers, (string.gsub([==[%s]==], "%s", name)))
end
"""


async def report() -> None:
    if shutil.which("wrk") is None:
        print("\nwrk is not on PATH: requests a second are not measured.")
        return
    with TemporaryDirectory() as path:
        folder = Path(path)
        async with api_server(folder) as api:
            await _fill(api)
            print(f"\n{'requests/s over TLS':<20}{'API server':>12}{'bare':>10}{'ratio':>8}")
            for number, (name, shape) in enumerate(SHAPES.items()):
                sample = await _sample(api, shape)
                (folder / "answer").write_bytes(sample)
                async with _bare(folder) as floor:
                    ours, bare = [await _measure_rate(folder, url, shape, number) for url in (api, floor)]
                print(f"{name:<20}{ours:>12.0f}{bare:>10.0f}{ours / bare:>8.2f}")


# --- servers


@asynccontextmanager
async def _process(*arguments: str, url: str) -> AsyncIterator[int]:
    """Run a server process until the block ends; yield its process ID when it responds."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with aiohttp.ClientSession(connector=connector()) as session:
            while not await _answers(session, url):
                assert process.returncode is None, f"{arguments} ended"
                await asyncio.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz"):
            return True
    except aiohttp.ClientConnectionError:
        return False


def connector() -> aiohttp.TCPConnector:
    return aiohttp.TCPConnector(ssl=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


@asynccontextmanager
async def api_server(folder: Path) -> AsyncIterator[str]:
    port, tokens = _free_port(), folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    flags = (f"--secure-port={port}", f"--cert-dir={folder}", f"--token-auth-file={tokens}")
    url = f"https://{HOST}:{port}"
    async with _process("-m", "mockube.apiserver", *flags, url=url):
        yield url


@asynccontextmanager
async def _bare(folder: Path) -> AsyncIterator[str]:
    port = _free_port()
    url = f"https://{HOST}:{port}"
    async with _process(__file__, str(folder), str(port), url=url):
        yield url


async def _serve_bare(folder: Path, port: int) -> None:
    answer = (folder / "answer").read_bytes()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")

    async def handle(request: web.BaseRequest) -> web.Response:
        if request.can_read_body:
            orjson.loads(await request.read())
        return web.Response(body=answer, content_type="application/json")

    server = await asyncio.get_running_loop().create_server(web.Server(handle), HOST, port, ssl=tls)
    await server.serve_forever()


# --- requests


async def _fill(api: str) -> None:
    async with aiohttp.ClientSession(connector=connector(), headers=AUTHORIZATION) as session:
        account = {"metadata": {"name": "default"}}
        async with session.post(f"{api}{FOLDER}/serviceaccounts", json=account) as answer:
            assert answer.status in (201, 409), await answer.text()
        for number in range(ITEMS):
            async with session.post(f"{api}{FOLDER}/configmaps", json=_map(f"item-{number}")) as answer:
                assert answer.status == 201, await answer.text()


def _text(shape: Shape) -> str:
    return "" if shape.body is None else orjson.dumps(shape.body).decode()


async def _sample(api: str, shape: Shape) -> bytes:
    """Return the API server's response, which must be a success."""
    headers = AUTHORIZATION | ({"Content-Type": shape.media_type} if shape.body else {})
    data = _text(shape).replace(NAME, "sample")
    async with (
        aiohttp.ClientSession(connector=connector(), headers=headers) as session,
        session.request(shape.method, api + shape.path, data=data or None) as answer,
    ):
        assert answer.ok, await answer.text()
        return await answer.read()


async def _measure_rate(folder: Path, url: str, shape: Shape, number: int) -> float:
    """Return the requests per second; no request may fail."""
    script = folder / "requests.lua"
    script.write_text(SCRIPT % (f"n{number}", shape.method, shape.path, _text(shape), NAME))
    headers = [f"Authorization: Bearer {TOKEN}", f"Content-Type: {shape.media_type}"]
    process = await asyncio.create_subprocess_exec(
        "wrk", f"-t{THREADS}", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(script),
        *(argument for header in headers for argument in ("-H", header)), url,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output = (await process.communicate())[0].decode()
    assert "Non-2xx" not in output, output
    match = re.search(r"Requests/sec:\s+([\d.]+)", output)
    assert match is not None, output
    return float(match[1])


if __name__ == "__main__":
    uvloop.run(_serve_bare(Path(sys.argv[1]), int(sys.argv[2])))
