"""Admission and defaulting of one object take time in proportion to its length."""

import asyncio

import orjson
import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.schema.builtin import load
from mockube.apimachinery.status import ApiError
from mockube.apiserver.admission.chain import plugins
from mockube.apiserver.admission.webhooks.dispatch import WebhookDependencies
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.kinds.kind_rules import Defaulter
from mockube.apiserver.metrics.admission import AdmissionMetrics, WebhookMetrics
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, RequestContext
from mockube.apiserver.schema.decode import Decoder
from mockube.apiserver.user import User
from mockube.client.component_helpers.pod_requests import nonzero_requests, pod_requests
from mockube.component_base.clock import RealClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put
from tests.support.hostile.doubling import check_linear, size_of_run
from tests.support.server.rows import catalog

pytestmark = pytest.mark.slow

POD = load().kind("v1", "Pod")
BASE = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "uid": "u"}}
DEFAULTS = Defaulter(load(), clock=RealClock())
LENIENT = {"negligible": 0.01, "too_long": 2.0}


def parametrize_make(of):
    return pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in of.items()])


ROWS = catalog()


def container(at, **fields):
    return {"name": f"c{at}", "image": "i", **fields}


def resources(at):
    return {"requests": {f"example.com/r{at}": "1"}, "limits": {f"example.com/r{at}": "1"}}


def secrets(size):
    return [
        {"name": f"E{at}", "valueFrom": {"secretKeyRef": {"name": f"s{at}", "key": "k"}}}
        for at in range(size)
    ]


PODS = {
    "containers": lambda size: {"containers": [container(at) for at in range(size)]},
    "a resource each": lambda size: {"containers": [container(at, resources=resources(at)) for at in range(size)]},
    "initial ones": lambda size: {
        "containers": [container("")],
        "initContainers": [container(at, resources=resources(at)) for at in range(size)],
    },
    "sidecars": lambda size: {
        "containers": [container("")],
        "initContainers": [
            container(at, resources=resources(at), restartPolicy="Always") for at in range(size)
        ],
    },
    "many resources": lambda size: {
        "containers": [container("", resources={"limits": {f"example.com/r{at}": "1" for at in range(size)}})]
    },
    "tolerations": lambda size: {
        "containers": [container("")],
        "tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(size)],
    },
    "mounts": lambda size: {
        "containers": [container("", volumeMounts=[{"name": "v", "mountPath": f"/{at}"} for at in range(size)])]
    },
    "secrets": lambda size: {"containers": [container("", env=secrets(size))]},
    "secret volumes": lambda size: {
        "containers": [container("")],
        "volumes": [{"name": f"v{at}", "secret": {"secretName": f"s{at}"}} for at in range(size)],
        "imagePullSecrets": [{"name": f"s{at}"} for at in range(size)],
    },
}  # fmt: skip
WRITTEN = {
    "nodes": {
        "taints": lambda size: {"taints": [{"key": f"k{at}", "effect": "NoSchedule"} for at in range(size)]}
    },
    "persistentvolumeclaims": {
        "resources": lambda size: {
            "resources": {"requests": {f"example.com/r{at}": "1" for at in range(size)}},
            "accessModes": ["ReadWriteOnce"] * size,
        },
    },
    "pods": PODS,
}

AUTHORIZATION = Authorization()
WEBHOOKS = WebhookDependencies(
    caller=None,
    authorization=AUTHORIZATION,
    equivalents=lambda row: [row],
    metrics=WebhookMetrics(MetricsRegistry()),
)
MANY = 300
STANDING = {
    b"limitranges/default/many": {
        "kind": "LimitRange",
        "apiVersion": "v1",
        "metadata": {"name": "many", "namespace": "default", "uid": "u"},
        "spec": {
            "limits": [
                {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}, "max": {"cpu": "2"}},
                {"type": "Pod", "max": {f"example.com/r{at}": "1k" for at in range(MANY)}},
                {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
            ]
        },
    },
    b"serviceaccounts/default/default": {
        "kind": "ServiceAccount",
        "apiVersion": "v1",
        "metadata": {
            "name": "default",
            "namespace": "default",
            "uid": "u",
            "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"},
        },
        "secrets": [{"name": f"s{at}"} for at in range(MANY)],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def server():
    """Return a function that runs admission plugins on the creation of an object."""
    clock = RealClock()
    with asyncio.Runner() as runner:

        async def start():
            store = MemoryStore(clock=clock)
            for key, tree in STANDING.items():
                await store.put(Put(key=b"/registry/" + key, value=orjson.dumps(tree)))
            making = ApiServer(
                store, ServerEnvironment(trust=Trust(tokens={}), clock=clock, random=SeededRandom())
            )
            return store, making, await making.__aenter__()

        store, making, started = runner.run(start())
        yield runner, started.registry
        runner.run(making.__aexit__(None, None, None))
        runner.run(store.close())


def make_admission_run(server, plugin, resource):
    runner, backend = server
    row = ROWS["", "v1", resource]
    user = User(name="system:node:x", groups=("system:nodes",))
    context = RequestContext(
        verb="create", resource=row, namespace="default" if row.namespaced else "", user=user
    )

    async def admit(attributes):
        await plugin.mutate(backend, attributes)
        await plugin.validate(backend, attributes)

    def run(spec):
        metadata = {"name": "x", "namespace": "default", "uid": "u"}
        tree = {"kind": row.kind, "apiVersion": "v1", "metadata": metadata, "spec": dict(spec)}
        attributes = AdmissionAttributes(operation=Operation.CREATE, context=context, name="x", object=tree)
        try:
            runner.run(admit(attributes))
        except ApiError as error:
            error.status()

    return run


@pytest.mark.parametrize(
    ("plugin", "resource", "make"),
    [
        pytest.param(plugin, resource, make, id=f"{type(plugin).__name__}-{name}")
        for plugin in plugins(WEBHOOKS, AUTHORIZATION, AdmissionMetrics(MetricsRegistry()))
        for resource, shapes in WRITTEN.items()
        if plugin.handles(Operation.CREATE, ("", resource, ""))
        for name, make in shapes.items()
    ],
)
def test_admission_plugins_take_linear_time(server, plugin, resource, make):
    check_linear(make, make_admission_run(server, plugin, resource), size_of_run(3_000, 30_000), **LENIENT)


def apply_defaults(spec):
    tree = orjson.loads(orjson.dumps({**BASE, "spec": spec}))
    DEFAULTS.default_object("v1", "Pod", Decoder().decode(POD, tree).tree)


WHOLE_PODS = {
    "defaults": apply_defaults,
    "what is requested": lambda spec: (pod_requests(spec), nonzero_requests(spec)),
}


def before(size):
    """The first half of the init containers are sidecars."""
    made = PODS["initial ones"](size)
    for one in made["initContainers"][: size // 2]:
        one["restartPolicy"] = "Always"
    return made


@parametrize_make({**PODS, "sidecars before others": before})
@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in WHOLE_PODS.items()])
def test_pod_totals_take_linear_time(make, way):
    check_linear(make, way, size_of_run(3_000, 30_000), **LENIENT)
