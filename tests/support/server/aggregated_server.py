"""An API server of another group, over TLS, that returns the requests it received."""

import asyncio
import base64
import contextlib
import ssl

import orjson
from aiohttp import web

from tests.support.server.webhook_server import credentials

GROUP = "agg.test"
PATH = f"/apis/{GROUP}/v1"
THINGS = f"{PATH}/namespaces/default/things"
RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1",
    "resources": [
        {
            "name": "things",
            "singularName": "thing",
            "namespaced": True,
            "kind": "Thing",
            "verbs": ["get", "list"],
            "shortNames": ["tg"],
        },
        {
            "name": "things/status",
            "singularName": "",
            "namespaced": True,
            "kind": "Thing",
            "verbs": ["get"],
        },
    ],
}
DOCUMENT = {"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {}}
ANSWER = {"description": "OK", "schema": {"$ref": "#/definitions/test.Thing"}}
V2 = {
    "swagger": "2.0",
    "paths": {f"{PATH}/things": {"get": {"responses": {"200": ANSWER}}}, "/apis/other": {}},
    "definitions": {"test.Thing": {"type": "object"}},
}


_REFUSED = {
    "redirect": (302, {"Location": "/elsewhere"}),
    "switch": (101, {"Connection": "Upgrade", "Upgrade": "websocket"}),
}
"""By the last part of the path, responses that an API server does not forward."""


class AggregatedServer:
    def __init__(self, authority):
        self.bundle = base64.b64encode(authority).decode()
        self.port = 0
        self.is_broken = False
        self.whole = None
        """The document of all groups; without it the server has resource lists only."""
        self.whole_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        self.lists = True
        """Whether it has resource lists."""
        self.discovered = []
        """The requests for discovery: path, user, groups, Accept and If-None-Match."""
        self.more = asyncio.Event()
        """Set to make a watch send its second event."""

    def api_service(self, **spec):
        defaults = {"group": GROUP, "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15}
        service = {"namespace": "default", "name": "agg", "port": 443}
        return {
            "metadata": {"name": f"v1.{GROUP}"},
            "spec": defaults | {"service": service, "caBundle": self.bundle} | spec,
        }

    async def answer(self, request):
        documents = {
            "/openapi/v3": {"paths": {PATH[1:]: {"serverRelativeURL": f"/openapi/v3{PATH}?hash=ABC"}}},
            f"/openapi/v3{PATH}": DOCUMENT,
            "/openapi/v2": V2,
        }
        if self.is_broken or request.path in ("/apis", PATH):
            return web.Response(status=500) if self.is_broken else self.discovery(request)
        if request.path in documents:
            return web.json_response(documents[request.path])
        if "watch" in request.query:
            return await self.watch(request)
        if request.path.endswith("/exec"):
            return await self.echo(request)
        if request.path.endswith("/refuse"):
            return web.Response(status=403, text="no sockets")
        if request.path.endswith("/count"):
            return await self.count(request)
        if (refused := _REFUSED.get(request.path.rpartition("/")[2])) is not None:
            return web.Response(status=refused[0], headers=refused[1])
        status = 404 if request.path.endswith("/missing") else 200
        sent = {
            "kind": "Echo",
            "method": request.method,
            "uri": request.path_qs,
            "body": (await request.read()).decode(),
            "headers": [[name.lower(), value] for name, value in request.headers.items()],
        }
        return web.json_response(sent, status=status, headers={"X-Mine": "yes"})

    def discovery(self, request):
        names = ("X-Remote-User", "X-Remote-Group", "Accept", "If-None-Match")
        headers = request.headers
        self.discovered.append((request.path, *(headers.get(name) for name in names)))
        if request.path == PATH:
            return web.json_response(RESOURCES if self.lists else {"kind": "Other", "apiVersion": "v1"})
        if self.whole is None:
            return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        if isinstance(self.whole, int):
            return web.Response(status=self.whole)
        etag = f'"{len(str(self.whole))}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304)
        body = self.whole if isinstance(self.whole, bytes) else orjson.dumps(self.whole)
        return web.Response(body=body, headers={"Content-Type": self.whole_type, "ETag": etag})

    async def echo(self, request):
        """Echo WebSocket messages, with the user and the token's protocol."""
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        await socket.send_str(f"{request.headers['X-Remote-User']} {request.headers.get('Authorization')}")
        async for message in socket:
            await socket.send_bytes(message.data[::-1])
        return socket

    async def count(self, request):
        size = 0
        async for data in request.content.iter_any():
            size += len(data)
        return web.json_response({"size": size, "length": request.headers.get("Content-Length")})

    async def watch(self, request):
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"n":1}}\n')
        await self.more.wait()
        await response.write(b'{"type":"ADDED","object":{"n":2}}\n')
        return response


@contextlib.asynccontextmanager
async def aggregated_server(tmp_path, *, client_authority=b""):
    """With a client CA it refuses clients without a certificate signed by it."""
    context, authority = credentials(tmp_path, ("agg.default.svc",))
    if client_authority:
        context.load_verify_locations(cadata=client_authority.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    server = AggregatedServer(authority)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        server.more.set()
        await runner.cleanup()
