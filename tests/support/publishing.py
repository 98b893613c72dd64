"""The parts of the publisher over caches that a test fills: without a server and without sockets, unless the test opens ports."""

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.patch import json_merge
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.status import NotFound
from mockube.client import kinds
from mockube.client.cache.informer import Informers, InformerSettings
from mockube.client.metrics.process import Metrics
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.simulated.predictions import SimulatedPredictions
from mockube.kubelet.network_view import InformerView
from mockube.publisher.bindings import Endpoint
from mockube.publisher.settings import PublisherContext, PublisherSettings
from tests.support.event_loop import yield_to_loop
from tests.support.images import IMAGES

ADDRESS = "127.0.0.1"
TURNS = 60
"""How often the other tasks run until nothing is left to do."""


class CacheClient:
    """A client of the objects in the caches, whose writes are in them at once."""

    def __init__(self, parts):
        self._parts = parts
        self.writes = []

    async def get(self, resource, key):
        found = self._parts.objects.get((resource, *key))
        if found is None:
            raise NotFound(str(key))
        return found

    async def create(self, resource, body):
        self.writes.append(("create", resource.plural, meta.name(body)))
        self._parts.put(resource, body)

    async def delete(self, resource, key):
        self.writes.append(("delete", resource.plural, key.name))
        self._parts.remove(resource, await self.get(resource, key))

    async def patch(self, resource, key, body, *, subresource=""):
        present = await self.get(resource, key)
        self.writes.append(("patch", "/".join(filter(None, (resource.plural, subresource))), key.name))
        self._parts.put(resource, json_merge.apply(present, body))


class RecordedEvents:
    def __init__(self):
        self.recorded = []

    def of(self, _):
        return self

    def record(self, about, kind, reason, text):
        self.recorded.append((meta.name(about), kind, reason, text))


class FakeHttp:
    """The ports of Ingresses and Gateways, which are not opened."""

    def __init__(self):
        self.users = set()
        self.routers = []
        self.problem = ""

    def add_router(self, router, choose):
        self.routers.append(router)
        self.choose = choose

    async def use(self, user):
        self.users.add(user)
        return self.problem

    def release(self, user):
        self.users.discard(user)

    def endpoint(self, *, uses_tls):
        return Endpoint(ADDRESS, 8443 if uses_tls else 8080)


class PublisherParts:
    def __init__(self):
        self.clock, self.events, self.client = SteppedClock(), RecordedEvents(), CacheClient(self)
        random = SeededRandom()
        self.informers = Informers(self.client, InformerSettings(clock=self.clock, random=random))
        self.view = InformerView(self.informers, IMAGES)
        self.listening = {}
        """What connects a client to a pod, by the pod's name and the port."""
        self.policy = ""
        self.objects = {}
        self._revision = 0
        self.context = PublisherContext(
            client=self.client,
            informers=self.informers,
            clock=self.clock,
            random=random,
            recorder=self.events,
            metrics=Metrics(self.clock),
            settings=PublisherSettings(
                is_enabled=True, address=ADDRESS, balancers="127.10.0.0/16", http_port=0, https_port=0
            ),
            view=self.view,
            port_behavior=SimulatedPredictions(IMAGES).port_behavior,
            find_listener=self._find_listener,
            admin_policy=self._admin_policy,
        )

    def _find_listener(self, pod, port, *, simulated=True, source=ADDRESS):
        del simulated, source
        return self.listening.get((meta.name(pod), port))

    async def _admin_policy(self):
        return self.policy

    def put(self, resource, *trees):
        for tree in trees:
            self._revision += 1
            copy = orjson.loads(orjson.dumps(tree))
            changed = meta.with_metadata(copy, resourceVersion=str(self._revision))
            self.objects[resource, *Key.of(changed)] = orjson.loads(orjson.dumps(changed))
            self.informers.of(resource).put(changed)

    def remove(self, resource, tree):
        self._revision += 1
        del self.objects[resource, *Key.of(tree)]
        self.informers.of(resource).remove(meta.with_metadata(tree, resourceVersion=str(self._revision)))

    async def sync(self, *resources):
        """Let the caches have all objects that the test has put into them."""
        for resource in resources:
            informer = self.informers.of(resource)
            trees = [resource.tree(each) for each in informer.lister.all()]
            await informer.replace(trees, self._revision)

    async def settle(self):
        await yield_to_loop(TURNS)


VIEWED = (
    kinds.NAMESPACES,
    kinds.NODES,
    kinds.PODS,
    kinds.SERVICES,
    kinds.ENDPOINT_SLICES,
    kinds.NETWORK_POLICIES,
    kinds.INGRESSES,
    kinds.INGRESS_CLASSES,
)
"""What the view of the network waits for."""
