"""What a kubelet reads for a container: the objects that it names, its tokens, its claims. Missing ones are left out."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import Forbidden, NotFound
from mockube.client import kinds
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.objects import ObjectsUnavailable
from mockube.container_runtime.records import Records
from mockube.kubelet.references import PodReferences, ReferenceLoader
from mockube.kubelet.step_effects import PatchObject, Step
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.pods import container, pod

TOKEN = {"serviceAccountToken": {"path": "token", "expirationSeconds": 1000, "audience": "vault"}}
KEY = ("vault", 1000)


def thing(name, namespace="ns", **fields):
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": "1"}, **fields}


def claim(name, volume="", origin=""):
    source = {"dataSource": {"kind": "PersistentVolumeClaim", "name": origin}} if origin else {}
    return thing(name, spec={"volumeName": volume, **source})


class Server:
    """Has objects, and counts the requests for each."""

    def __init__(self, *objects):
        self.objects = {(resource, tree["metadata"]["name"]): tree for resource, tree in objects}
        self.requests, self.error, self.accounts = [], None, []

    async def get(self, resource, key):
        self.requests.append(key.name)
        if self.error:
            raise self.error
        if (resource, key.name) not in self.objects:
            raise NotFound("gone")
        return self.objects[resource, key.name]

    async def list(self, resource, *_, **__):
        return SimpleNamespace(items=[tree for (kind, _), tree in self.objects.items() if kind is resource])

    async def create(self, _resource, body, *, key, subresource):
        assert subresource == "token"
        self.accounts.append((key, body["spec"]["audiences"], body["spec"]["boundObjectRef"]["uid"]))
        if key.name == "none":
            raise Forbidden("no")
        return {"status": {"token": f"token {len(self.accounts)}"}}


class Certificates:
    async def ensure(self, _pod, volume, index):
        return f"{volume}/{index}"


def loader_of(*objects, nodes=()):
    server = Server(*objects)
    lister = FakeCaches({kinds.NODES: nodes}).of(kinds.NODES)
    return server, ReferenceLoader(Records(), server, lister, Certificates())


def with_volume(source, **spec):
    mounted = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return pod(mounted, volumes=[{"name": "v", **source}], **spec)


async def loaded(subject, *objects, **options):
    _, loader = loader_of(*objects, **options)
    return await loader.load(subject, subject["spec"]["containers"][0])


async def test_objects_that_exist_are_loaded():
    env = [{"configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}}, {"secretRef": {"name": "none"}}]
    objects = [(kinds.CONFIG_MAPS, thing("m")), (kinds.SECRETS, thing("s")), (kinds.SECRETS, thing("other"))]
    found = await loaded(pod(container(envFrom=env)), *objects)
    assert (found.config_maps, found.secrets) == ({"m": thing("m")}, {"s": thing("s")})


@pytest.mark.parametrize(
    ("spec", "objects", "names"),
    [
        ({}, ["kubernetes", "web"], ["kubernetes", "web"]),
        ({"enableServiceLinks": True}, ["kubernetes", "web"], ["kubernetes", "web"]),
        ({"enableServiceLinks": False}, ["kubernetes", "web"], ["kubernetes"]),
        ({}, ["web"], ["web"]),
    ],
)
async def test_services_are_that_of_the_server_and_those_with_links(spec, objects, names):
    services = [(kinds.SERVICES, thing(name)) for name in objects]
    found = await loaded(pod(**spec), *services)
    assert [each["metadata"]["name"] for each in found.services] == names


@pytest.mark.parametrize(
    ("volume", "claims", "names"),
    [
        ({"emptyDir": {}}, [claim("data", "pv")], set()),
        ({"persistentVolumeClaim": {"claimName": "data"}}, [claim("data", "pv")], {"data", "pv"}),
        ({"persistentVolumeClaim": {"claimName": "data"}}, [claim("data")], {"data"}),
        ({"persistentVolumeClaim": {"claimName": "data"}}, [], set()),
        (
            {"persistentVolumeClaim": {"claimName": "data"}},
            [claim("data", "pv", "old"), claim("old", "pw")],
            {"data", "old", "pv", "pw"},
        ),
        ({"ephemeral": {"volumeClaimTemplate": {}}}, [claim("p-v", "pv")], {"p-v", "pv"}),
    ],
)
async def test_storage_is_that_of_the_claims(volume, claims, names):
    volumes = [(kinds.PERSISTENT_VOLUMES, thing(name, "")) for name in ("pv", "pw", "px")]
    objects = [*((kinds.PERSISTENT_VOLUME_CLAIMS, each) for each in claims), *volumes]
    found = await loaded(with_volume(volume), *objects)
    assert {name for _, name in found.storage} == names


@pytest.mark.parametrize(
    ("account", "tokens"), [({}, {KEY: "token 1"}), ({"serviceAccountName": "none"}, {})]
)
async def test_token_is_that_of_the_account(account, tokens):
    server, loader = loader_of()
    subject = with_volume({"projected": {"sources": [TOKEN]}}, **account)
    found = await loader.load(subject, subject["spec"]["containers"][0])
    assert found.tokens == tokens
    name = account.get("serviceAccountName", "default")
    assert server.accounts == [(Key("ns", name), ["vault"], "uid-1")]


async def test_token_is_renewed_before_it_expires():
    server, loader = loader_of()
    clock, subject = SteppedClock(), with_volume({"projected": {"sources": [TOKEN]}})
    references = PodReferences(loader, clock, subject)
    for seconds, requests in ((0, 1), (799, 1), (1, 2), (799, 2), (1, 3)):
        clock.advance(seconds)
        found = await references.load(subject["spec"]["containers"][0])
        assert len(server.accounts) == requests
        assert found.tokens == {KEY: f"token {requests}"}


@pytest.mark.parametrize(
    ("sources", "count"),
    [
        ([{"clusterTrustBundle": {"name": "x", "path": "ca"}}], 1),
        ([TOKEN], 0),
    ],
)
async def test_trust_bundles_are_listed_for_those_that_project_them(sources, count):
    bundles = (kinds.CLUSTER_TRUST_BUNDLES, thing("x", ""))
    assert len((await loaded(with_volume({"projected": {"sources": sources}}), bundles)).bundles) == count


async def test_certificates_are_those_of_their_sources():
    sources = [TOKEN, {"podCertificate": {"signerName": "a/b", "keyType": "ED25519", "keyPath": "k"}}]
    found = await loaded(with_volume({"projected": {"sources": sources}}))
    assert found.credentials == {("v", 1): "v/1"}


@pytest.mark.parametrize(
    ("nodes", "allocatable"),
    [
        ([], {}),
        ([thing("node-1", "")], {}),
        ([thing("node-1", "", status={"allocatable": {"cpu": "4"}})], {"cpu": "4"}),
    ],
)
async def test_resources_are_those_of_the_node(nodes, allocatable):
    assert (await loaded(pod(), nodes=nodes)).allocatable == allocatable


@pytest.mark.parametrize("error", [Forbidden("no"), NoResponse("no")], ids=["refused", "no response"])
async def test_server_without_an_answer_is_reported(error):
    server, loader = loader_of()
    server.error = error
    with pytest.raises(ObjectsUnavailable, match="no"):
        await loader.load(pod(), container())


@pytest.mark.parametrize(
    ("restarts", "in_status", "is_started"),
    [(None, 0, True), (0, 5, True), (1, 0, False), (None, 1, False), (None, None, True)],
)
async def test_objects_of_a_run_are_those_of_its_start(restarts, in_status, is_started):
    variable = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}
    server, loader = loader_of((kinds.CONFIG_MAPS, thing("m", data={"k": "old"})))
    subject = pod(container(env=[variable]))
    status = {"name": "c", "restartCount": 0, "state": {"running": {}}}
    step = Step(effects=(PatchObject(body={"status": {"containerStatuses": [status]}}),))
    first = await loader.load(subject, subject["spec"]["containers"][0])
    await loader.started.note_step(subject, first, step)
    server.objects[kinds.CONFIG_MAPS, "m"] = thing("m", data={"k": "new"})
    if in_status is not None:
        subject["status"]["containerStatuses"] = [{**status, "restartCount": in_status}]
    found = await loader.load_shared(subject, subject["spec"]["containers"][0], restarts)
    assert found.config_maps["m"]["data"] == {"k": "new"}
    started = found.started_config_maps or {}
    assert ({name: tree["data"]["k"] for name, tree in started.items()} == {"m": "old"}) is is_started
