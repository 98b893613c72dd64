"""The objects that pods refer to: found in the cache or on the server, and waited for."""

from datetime import UTC, datetime

import pytest

from mockube.client.cache.informer import Informer
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.client.verbs import ObjectList
from mockube.container_runtime.records import Records
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
