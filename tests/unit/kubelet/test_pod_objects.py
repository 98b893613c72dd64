"""The objects that pods refer to: found in the cache or on the server, and waited for."""

from datetime import UTC, datetime

import pytest

from mockube.client.cache.informer import Informer
from mockube.client.kinds import CLUSTER_TRUST_BUNDLES, CONFIG_MAPS, NODES, PERSISTENT_VOLUME_CLAIMS, SECRETS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.client.verbs import ObjectList
from mockube.container_runtime.config.projections import NOT_ISSUED
from mockube.container_runtime.records import Records
from mockube.kubelet import pod_objects
from mockube.kubelet.pod_objects import PodObjects
from mockube.kubelet.possible_creators import PossibleCreators
from tests.support.controllers.informers import fill
from tests.support.images import PREDICTIONS

LATER = datetime(2030, 1, 1, tzinfo=UTC)


class Informers:
    """One cache for each kind, filled by the test."""

    def __init__(self, clock):
        self._clock = clock
        self.caches = {}

    def of(self, resource):
        if resource not in self.caches:
            self.caches[resource] = Informer(resource, clock=self._clock)
            fill(self.caches[resource], [], 1)
        return self.caches[resource]


class Server:
    """Answers lists by name, and counts them."""

    def __init__(self):
        self.objects = {}
        self.revision = 10
        self.requests = []

    async def list(self, resource, namespace, *, field_selector):
        name = field_selector.removeprefix("metadata.name=")
        self.requests.append((resource.plural, namespace, name))
        items = [tree for tree in [self.objects.get(name)] if tree is not None]
        return ObjectList(items, str(self.revision), "")


class Certificates:
    """Requests no certificates."""

    def add_handler(self, _): ...


class Creators(PossibleCreators):
    """A pod that may create ConfigMaps runs in the namespace `creating`."""

    def __init__(self):
        super().__init__(None, None, None, PREDICTIONS)

    async def find(self, namespace, resource):
        return "operator" if (namespace, resource) == ("creating", CONFIG_MAPS) else ""


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def informers(clock):
    return Informers(clock)


@pytest.fixture
def enqueued():
    return []


@pytest.fixture
def records():
    return Records()


@pytest.fixture
def objects(records, server, informers, enqueued):
    return PodObjects(
        records, server, informers, enqueued.append, creators=Creators(), certificates=Certificates()
    )


def pod(name="p", version=5, namespace="ns"):
    metadata = {"namespace": namespace, "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return PodView.of({"metadata": metadata, "spec": {}})


def config_map(name, version=3):
    return {"metadata": {"namespace": "ns", "name": name, "uid": "u", "resourceVersion": str(version)}}


async def resolved(objects, view, name):
    of_pod = objects.of(view)
    of_pod.config_map(name)
    await of_pod.find_unknown()
    return of_pod.config_map(name), of_pod.unknown


async def test_cached_object_needs_no_request(objects, informers, server):
    await informers.of(CONFIG_MAPS).replace([config_map("m")], 4)
    of_pod = objects.of(pod())
    assert of_pod.config_map("m") == config_map("m")
    assert (of_pod.unknown, server.requests) == (set(), [])


async def test_object_that_cache_lacks_is_read_from_server(objects, server):
    server.objects["m"] = config_map("m")
    assert await resolved(objects, pod(), "m") == (config_map("m"), set())


async def test_missing_object_is_requested_once_for_all_older_pods(objects, server):
    for version in range(11):
        assert await resolved(objects, pod(version=version), "m") == (None, set())
    assert server.requests == [("configmaps", "ns", "m")]
    server.revision, server.objects = 20, {"m": config_map("m", 15)}
    assert await resolved(objects, pod(version=16), "m") == (config_map("m", 15), set())


async def test_blocked_pod_is_enqueued_when_its_object_changes(objects, informers, enqueued):
    blocked, view = objects.of(pod()), pod()
    blocked.config_map("m")
    objects.note_step(view, blocked.used, LATER)
    assert objects.retry_at(view.uid) == LATER
    informers.of(CONFIG_MAPS).put(config_map("other", 6))
    assert enqueued == []
    informers.of(CONFIG_MAPS).put(config_map("m", 7))
    assert enqueued == [Key("ns", "p")]


@pytest.mark.parametrize("end", ["started", "deleted"])
async def test_pod_no_longer_blocked_is_not_enqueued(records, objects, informers, enqueued, end):
    view, blocked = pod(), objects.of(pod())
    blocked.config_map("m")
    objects.note_step(view, blocked.used, LATER)
    if end == "started":
        objects.note_step(view, set(), None)
    else:
        records.remove(view.uid)
    informers.of(CONFIG_MAPS).put(config_map("m", 7))
    assert (enqueued, objects.retry_at(view.uid)) == ([], None)


async def test_unpublished_root_ca_counts_as_present(server, informers):
    objects = PodObjects(
        Records(),
        server,
        informers,
        lambda _: None,
        creators=Creators(),
        certificates=Certificates(),
        has_root_ca=False,
    )
    unpublished = objects.of(pod())
    assert unpublished.config_map("kube-root-ca.crt")["data"].keys() == {"ca.crt"}
    assert (unpublished.unknown, unpublished.used) == (set(), set())


def job_pod(*command):
    view = pod("j")
    metadata = {**view.object["metadata"], "labels": {"batch.kubernetes.io/job-name": "j"}}
    container = {"name": "c", "image": "hook", "command": list(command)}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return PodView.of({"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("command", "expected"), [(["certgen", "create"], True), (["sh", "-c", "exit 0"], False)]
)
async def test_job_with_program_that_is_not_simulated_is_noted(objects, command, expected):
    objects.note_run(job_pod(*command))
    assert bool(await objects.possible_creators(objects.of(pod()))) is expected
    assert not await objects.possible_creators(objects.of(pod(namespace="other")))


async def test_pod_without_job_is_not_noted(objects):
    view = job_pod("certgen")
    plain = {**view.object, "metadata": {**view.object["metadata"], "labels": {}}}
    objects.note_run(PodView.of(plain))
    assert not await objects.possible_creators(objects.of(pod()))


@pytest.mark.parametrize(
    ("namespace", "creators"), [("creating", {CONFIG_MAPS: "pod operator runs"}), ("ns", {})]
)
async def test_running_pod_may_create_missing_object(objects, namespace, creators):
    of_pod = objects.of(pod(namespace=namespace))
    for name in ("m", "n"):
        of_pod.config_map(name)
    of_pod.secret("s")
    await of_pod.find_unknown()
    assert await objects.possible_creators(of_pod) == creators


class OtherCertificates:
    """Has the certificates that a test gives, after they were requested."""

    def __init__(self):
        self.found, self.requested, self.handlers = {}, [], []

    def add_handler(self, handler):
        self.handlers.append(handler)

    def find(self, uid, volume, index):
        return self.found.get((uid, volume, index))

    async def ensure(self, _, volume, index):
        self.requested.append((volume, index))


@pytest.fixture
def certificates():
    return OtherCertificates()


@pytest.fixture
def shared(records, server, informers, enqueued, certificates):
    return PodObjects(
        records, server, informers, enqueued.append, creators=Creators(), certificates=certificates
    )


async def test_certificate_is_requested_once_in_a_step(shared, certificates, enqueued):
    of_pod = shared.of(pod())
    assert of_pod.credential("v", 1).problem == NOT_ISSUED
    assert of_pod.credential("v", 0).problem == NOT_ISSUED
    assert of_pod.has_unknown
    await of_pod.find_unknown()
    assert certificates.requested == [("v", 0), ("v", 1)]
    assert of_pod.credential("v", 0).problem == NOT_ISSUED
    assert not of_pod.has_unknown
    certificates.found["uid-p", "v", 0] = "credential"
    assert of_pod.credential("v", 0) == "credential"
    certificates.handlers[0](Key("ns", "p"))
    assert enqueued == [Key("ns", "p")]


async def test_cached_object_is_read_from_the_cache_of_its_kind(shared, informers, server):
    of_pod = shared.of(pod())
    informers.of(NODES)
    assert of_pod.cached_object(NODES, "n") is None
    assert of_pod.cached_object(PERSISTENT_VOLUME_CLAIMS, "c") is None
    assert of_pod.used == {(NODES, Key("", "n")), (PERSISTENT_VOLUME_CLAIMS, Key("ns", "c"))}
    assert (of_pod.unknown, of_pod.has_unknown) == (set(), False)
    informers.caches[SECRETS] = Informer(SECRETS, clock=informers._clock)
    of_pod.cached_object(SECRETS, "s")
    assert of_pod.unknown == {(SECRETS, Key("ns", "s"))}
    informers.of(NODES).put({"metadata": {"name": "n", "uid": "u", "resourceVersion": "6"}})
    assert await shared.find((NODES, Key("", "n"))) is not None
    assert await shared.find((NODES, Key("", "m"))) is None
    assert server.requests == []


@pytest.mark.parametrize("is_synced", [True, False])
def test_trust_bundles_are_those_of_the_cache(shared, informers, is_synced):
    if not is_synced:
        informers.caches[CLUSTER_TRUST_BUNDLES] = Informer(CLUSTER_TRUST_BUNDLES, clock=informers._clock)
    of_pod = shared.of(pod())
    assert [*of_pod.trust_bundles()] == []
    assert len(of_pod.used) == 1
    assert of_pod.has_unknown is not is_synced


def test_object_without_a_name_is_not_searched(shared):
    of_pod = shared.of(pod())
    assert of_pod.secret("") is None
    assert (of_pod.unknown, of_pod.absent) == (set(), set())


async def test_absences_are_forgotten_when_there_are_many(shared, monkeypatch, server):
    monkeypatch.setattr(pod_objects, "MAX_ABSENCES", 2)
    for name in ("a", "b", "c"):
        await shared.find((SECRETS, Key("ns", name)))
    assert [*shared._absent_at.items()] == [((SECRETS, Key("ns", "c")), 10)]
    assert shared.is_absent((SECRETS, Key("ns", "c")), 10)
    assert not shared.is_absent((SECRETS, Key("ns", "c")), 11)
    assert not shared.is_absent((SECRETS, Key("ns", "a")), 0)
    assert len(server.requests) == 3


async def test_pod_that_waits_for_any_bundle_is_enqueued(shared, informers, enqueued):
    waits, view = shared.of(pod()), pod()
    waits.trust_bundles()
    shared.note_step(view, waits.used, LATER)
    informers.of(CLUSTER_TRUST_BUNDLES).put({"metadata": {"name": "b", "uid": "u", "resourceVersion": "6"}})
    assert enqueued == [Key("ns", "p")]
    assert shared.retry_at("other") is None


@pytest.mark.parametrize("labels", [{}, {"batch.kubernetes.io/job-name": "j"}])
async def test_unknown_program_of_a_job_may_create_objects(shared, labels):
    tree = pod().object
    shared.note_unknown_program({**tree, "metadata": {**tree["metadata"], "labels": labels}})
    assert bool(await shared.possible_creators(shared.of(pod()))) is bool(labels)
