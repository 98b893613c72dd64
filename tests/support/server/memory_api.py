"""The verbs of the API over a store in memory: a write runs its stages and its admission, without HTTP and without filters.

A path and a body are those of a request; a refusal is an answer with a Status, as a client gets it.
"""

import contextlib
from dataclasses import dataclass, field
from types import SimpleNamespace

import orjson
from msgspec.structs import replace

from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.status import ApiError
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.customresources.controller import DefinitionController
from mockube.apiserver.customresources.conversion_webhook import ReviewDependencies
from mockube.apiserver.metrics.admission import ConversionMetrics
from mockube.apiserver.outgoing import CallFailed, OutgoingDependencies
from mockube.apiserver.parts.admission import make_admission
from mockube.apiserver.parts.authorization import make_rights
from mockube.apiserver.parts.caches import ResourceCaches
from mockube.apiserver.parts.catalog import make_catalog
from mockube.apiserver.parts.context import make_context
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.parts.registry import make_registry
from mockube.apiserver.registry.convert import to_client_version
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import Body, ListResult, RequestContext
from mockube.apiserver.request.endpoints import BINDINGS, RESOURCE_VERBS, SUBRESOURCE_VERBS
from mockube.apiserver.request_info import parse as parse_path
from mockube.apiserver.request_info import parse_query
from mockube.apiserver.storage.journal import Journal
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Range

ADMIN = User(name="admin", groups=("system:masters", "system:authenticated"))
ALICE = User(name="alice", groups=("system:authenticated",))
NODE = User(name="system:node:n1", groups=("system:nodes", "system:authenticated"))
CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"


@dataclass(frozen=True)
class Answer:
    code: int
    body: dict
    warnings: list = field(default_factory=list)

    @property
    def message(self):
        return self.body.get("message", "")

    @property
    def refusal(self):
        """The code and the message of a request that was refused."""
        return self.code, self.message


class FakeServers:
    """The servers that the API server calls. Each function gets the decoded review, and returns its response."""

    def __init__(self):
        self.admit = None
        self.convert = None
        self.review_images = None

    async def post(self, _endpoint, body, *, seconds):
        """Answer an AdmissionReview."""
        del seconds
        request = orjson.loads(body)["request"]
        response = {"uid": request["uid"], "allowed": True} | self.admit(request)
        return orjson.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        )

    async def post_conversion(self, _client, body):
        """Answer a ConversionReview."""
        request = orjson.loads(body)["request"]
        converted = [self.convert(tree, request["desiredAPIVersion"]) for tree in request["objects"]]
        response = {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}
        return orjson.dumps(
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
        )

    async def send(self, request):
        """Answer an ImageReview."""
        if self.review_images is None:
            raise CallFailed("connection refused")
        review = orjson.loads(request.body)
        status = self.review_images(review["spec"])
        return SimpleNamespace(code=200, status_line="200 OK", body=orjson.dumps(review | {"status": status}))


class MemoryApi:
    """`create`, `update` and so on send a request with a path and a body; options are parameters of the query."""

    def __init__(self, registry: Registry, catalog, rights, servers, definitions):
        self.registry = registry
        self.catalog = catalog
        self.rights = rights
        self.servers = servers
        self._definitions = definitions

    async def create(self, path, tree, *, user=ADMIN, **options):
        return await self.send("POST", path, tree, user=user, **options)

    async def update(self, path, tree, *, user=ADMIN, **options):
        return await self.send("PUT", path, tree, user=user, **options)

    async def patch(self, path, patch, *, kind="merge-patch+json", user=ADMIN, **options):
        return await self.send("PATCH", path, patch, media_type=f"application/{kind}", user=user, **options)

    async def apply(self, path, tree, *, manager="m", user=ADMIN, **options):
        kind = "apply-patch+yaml"
        return await self.patch(path, tree, kind=kind, user=user, fieldManager=manager, **options)

    async def delete(self, path, options=None, *, user=ADMIN, **query):
        return await self.send("DELETE", path, options, user=user, **query)

    async def get(self, path):
        return await self.send("GET", path)

    async def create_all(self, *objects):
        """Create objects that a test needs, each as a path and a tree; later writes see them."""
        for path, tree in objects:
            answer = await self.create(path, tree)
            assert answer.code == 201, answer.message
        await self.settle()

    async def settle(self):
        """Wait until the caches have all writes, and the kinds of all definitions are served."""
        await self.registry.watch_cache.fresh()
        await self._definitions.wait_idle()

    async def stored(self, path):
        """Return the object that the store has; None if it has none."""
        info = parse_path("GET", path, watch=False)
        row = self.catalog.rows[info.group, info.version, info.resource]
        key = self.registry.layout.object(row, info.namespace if row.namespaced else "", info.name)
        kvs = (await self.registry.kv.range(Range(key=key))).kvs
        return orjson.loads(kvs[0].value) if kvs else None

    async def send(
        self, method, path, body=None, *, media_type="application/json", user=ADMIN, registry=None, **options
    ):
        context = self.context(method, path, body, media_type=media_type, user=user, **options)
        verb = self._verb(context)
        try:
            result = await verb(registry or self.registry, context)
            if self.registry.scheme.conversion(context.resource) is not None:
                result = await to_client_version(
                    self.registry, context.resource, result, is_read=context.verb == "get"
                )
        except ApiError as error:
            return Answer(error.code, error.status(), context.report.warnings)
        if isinstance(result, ListResult):
            return Answer(200, {"items": [item.tree() for item in result.items]}, context.report.warnings)
        return Answer(result.code, result.object(), context.report.warnings)

    def context(self, method, path, body=None, *, media_type="application/json", user=ADMIN, **options):
        """Return what the filters and the endpoint make of a request."""
        path, _, query = path.partition("?")
        info = parse_path(method, path, watch=False)
        row = self.catalog.rows[info.group, info.version, info.resource]
        data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        context = RequestContext(
            verb=info.verb,
            resource=row,
            subresource=row.subresource(info.subresource) if info.subresource else None,
            namespace=info.namespace if row.namespaced else "",
            name="" if info.verb == "create" and not info.subresource else info.name,
            query={**parse_query(query), **{name: [value] for name, value in options.items()}},
            body=Body(data=data, media_type=media_type),
            user=user,
            user_agent="tests/1",
        )
        context.work.memory = self.registry.memory
        return context

    @staticmethod
    def _verb(context):
        name = context.subresource.name if context.subresource else ""
        own = BINDINGS.get((context.resource.group_resource, name))
        return (own or (SUBRESOURCE_VERBS[name] if name else RESOURCE_VERBS))[context.verb]

    def with_admission(self, admission):
        """Return the registry with another admission, for `send`."""
        return replace(self.registry, admission=admission)


@contextlib.asynccontextmanager
async def running_api(*flags, modes=("AlwaysAllow",), is_empty=False):
    """A `MemoryApi` with the namespace `default` and its account, unless it is empty. The flags are those of the API server."""
    config = parse(["--service-cluster-ip-range=10.0.0.0/16", *flags], {})
    config = replace(config, authorization=replace(config.authorization, authorization_mode=modes))
    clock, servers = SteppedClock(), FakeServers()
    environment = ServerEnvironment(trust=Trust(tokens={}), clock=clock, random=SeededRandom())
    context = make_context(config, environment, MemoryStore(clock=clock))
    reviews = ReviewDependencies(
        post=servers.post_conversion,
        clock=clock,
        random=environment.random,
        metrics=ConversionMetrics(context.metrics),
    )
    catalog = make_catalog(config)
    rights = make_rights(config, catalog)
    outbound = OutgoingDependencies(send=servers.send, clock=clock)
    outgoing = SimpleNamespace(webhooks=servers, remote=SimpleNamespace(outbound=outbound))
    admission = make_admission(context, catalog, rights, outgoing).chain
    registry = make_registry(context, catalog, rights, admission, Journal(clock))
    caches, definitions = ResourceCaches(registry, catalog), DefinitionController(registry, catalog, reviews)
    api = MemoryApi(registry, catalog, rights, servers, definitions)
    supervisor = context.supervisor
    async with supervisor.running():
        supervisor.start("watch-cache", registry.watch_cache.run)
        await registry.watch_cache.progress.wait_listed()
        rights.watch(caches.of, registry.watch_cache)
        supervisor.start("crd-establishing", definitions.run)
        if not is_empty:
            named = {"metadata": {"name": "default"}}
            await api.create_all(("/api/v1/namespaces", named), (f"{CORE}/serviceaccounts", named))
        yield api
