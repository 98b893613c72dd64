"""An API server in the test's own loop, with a store in memory, and a plain HTTP client for it."""

import contextlib
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache

import aiohttp
import orjson
from aiohttp import web
from msgspec.structs import replace
from yarl import URL

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.authz.rights import DEFAULT_MODES
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.packs.definitions import definition_trees
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.user import User
from mockube.component_base.clock import RealClock
from mockube.component_base.packs import own_pack_names
from mockube.etcd.embedded.store import MemoryStore

ADMIN = User(name="admin", uid="admin-uid", groups=("system:masters", "system:authenticated"))
ALICE = User(name="alice", groups=("system:authenticated",))
TOKENS = {"admin": ADMIN, "alice": ALICE}
OPEN = ("AlwaysAllow",)
SERVICE_NETWORK = "--service-cluster-ip-range=10.0.0.0/16"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: object
    data: bytes

    @property
    def body(self):
        return orjson.loads(self.data)


@cache
def kinds_of_packs():
    """Return the kinds of the packs that come with mockube, by group and plural."""
    specs = [tree["spec"] for pack in own_pack_names() for tree in definition_trees(pack)]
    return {(spec["group"], spec["names"]["plural"]): spec["names"]["kind"] for spec in specs}


def typed(path, body):
    """Return the body with its kind, if it is an object of a pack without one: custom objects must have it."""
    _, _, group, version, *rest = [*path.split("/"), "", "", ""]
    if "." not in group or group.endswith(".k8s.io") or not isinstance(body, dict) or rest[-4] == "scale":
        return body
    kind = next((kinds_of_packs()[group, part] for part in rest if (group, part) in kinds_of_packs()), None)
    if kind is None:
        return body
    return {"apiVersion": f"{group}/{version}", "kind": kind, **body}


class Client:
    """`client.get(path)` and the like; a body that is neither bytes nor an async iterator is sent as JSON."""

    def __init__(self, session, url, *, authorization="Bearer admin"):
        self.session = session
        self.url = url
        self.credentials = {"Authorization": authorization} if authorization else {}

    async def send(self, method, path, body=None, **headers):
        data = body if isinstance(body, bytes | AsyncIterator | None) else orjson.dumps(body)
        if isinstance(data, bytes) and data:
            data = io.BytesIO(data)
        all_headers = {"Content-Type": "application/json"} | self.credentials
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, URL(self.url + path, encoded=True), data=data, headers=all_headers
        ) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def get(self, path, **headers):
        return await self.send("GET", path, **headers)

    async def post(self, path, body, **headers):
        return await self.send("POST", path, typed(path, body), **headers)

    async def put(self, path, body, **headers):
        return await self.send("PUT", path, typed(path, body), **headers)

    async def delete(self, path, body=None, **headers):
        return await self.send("DELETE", path, body, **headers)

    async def patch(self, path, body, *, kind="merge-patch+json", **headers):
        return await self.send("PATCH", path, body, Content_Type=f"application/{kind}", **headers)

    @contextlib.asynccontextmanager
    async def watch(self, path, **headers):
        """Yield the events of a watch, one at a time. A watch that is left before its end is cut.

        A closing TLS connection waits for the server to close it as well, which would delay the test.
        """
        all_headers = self.credentials | {name.replace("_", "-"): v for name, v in headers.items()}
        async with self.session.get(self.url + path, headers=all_headers) as answer:
            assert answer.status == 200, await answer.text()

            async def events():
                async for line in answer.content:
                    yield orjson.loads(line)

            try:
                yield events()
            finally:
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()


@contextlib.asynccontextmanager
async def running(*flags, clock=None, kv=None, config=None, modes=OPEN, environment=None, **trust):
    """A client of a server with a namespace `default`, where every user may do everything.

    `config` is given instead of flags, and `environment` has fields of `ServerEnvironment` other than the clock and the trust.
    """
    clock = clock or RealClock()
    store = kv or MemoryStore(clock=clock)
    environment = ServerEnvironment(
        trust=Trust(tokens=TOKENS, **trust), clock=clock, random=SeededRandom(), **environment or {}
    )
    making = ApiServer(store, environment, _with_modes(config or server_config(*flags), modes))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        server = await stack.enter_async_context(making)
        runner = web.ServerRunner(server.http, access_log=None)
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        session = await stack.enter_async_context(aiohttp.ClientSession(read_bufsize=1 << 22))
        client = Client(session, f"http://127.0.0.1:{runner.addresses[0][1]}")
        client.server = server
        await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
        yield client


def server_config(*flags):
    """The configuration of a server with some flags, with room for many Services."""
    networks = [] if any("cluster-ip-range" in flag for flag in flags) else [SERVICE_NETWORK]
    return parse([*networks, *flags], {})


def _with_modes(config, modes):
    """`modes` replace those of the flags; a file or a webhook of authorization has its own."""
    if config.authorization.authorization_config.path is not None:
        return config
    return replace(config, authorization=replace(config.authorization, authorization_mode=modes))


@contextlib.asynccontextmanager
async def running_with_roles(*flags, **options):
    """The same with RBAC and the bootstrap roles and bindings."""
    async with running(*flags, modes=DEFAULT_MODES, **options) as client:
        for namespace in ("kube-system", "kube-public"):
            await client.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert await client.server.bootstrap_roles.reconcile()
        await client.server.registry.watch_cache.fresh()
        yield client
