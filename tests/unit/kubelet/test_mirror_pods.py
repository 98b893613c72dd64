"""The mirror pods of a node's manifests: created, replaced, deleted and restored, without a server."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import AlreadyExists, Forbidden, NotFound
from mockube.client import kinds
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.kubelet.installation import NODE_ADDRESS, Installation, address_of_peer
from mockube.kubelet.running_programs import running_programs
from mockube.kubelet.static_pods.static_pods import StaticPods
from tests.support.controllers.informers import fill
from tests.support.controllers.scheduler_parts import SchedulerContext
from tests.support.event_loop import yield_to_loop

FOLDER = "/etc/kubernetes/manifests"
WEB = b"{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: ns}, spec: {containers: [{name: c, image: x, command: [/bin/httpd]}]}}"
OTHER = WEB.replace(b"image: x", b"image: z")
SIMULATED = {"kwok.x-k8s.io/node": "fake"}
RUNNING = {
    "startTime": "t",
    "containerStatuses": [{"name": "c", "restartCount": 3, "state": {"running": {}}}],
}


def node(name="n", uid="uid-n", address="10.0.0.1", **annotations):
    return {
        "metadata": {
            "name": name,
            "uid": uid,
            "resourceVersion": "1",
            "annotations": {**SIMULATED, **annotations},
        },
        "status": {"addresses": [{"type": "InternalIP", "address": address}]},
    }


STOPPED = {"mockube.dev/stop-heartbeats": "true"}


class Server:
    """Creates and deletes pods in the cache, as a server and its watch do."""

    def __init__(self, pods):
        self.pods, self.writes, self.error, self.number = pods, [], None, 0

    async def create(self, _resource, body):
        self.writes.append(("create", body["metadata"]["name"]))
        if self.error:
            raise self.error
        self.number += 1
        metadata = {**body["metadata"], "uid": f"uid-{self.number}", "resourceVersion": "5"}
        self.pods.put({**body, "metadata": metadata, "status": {}})

    async def delete(self, _resource, key, *, grace_period_seconds=None, **_):
        self.writes.append(("delete", key.name, grace_period_seconds))
        if self.error:
            raise self.error
        self.pods.remove(self.pods.lister.get(*key).object)


class Runtime:
    def __init__(self, files):
        self.files = files

    def node_files(self, _node, folder):
        assert folder == FOLDER
        return self.files

    def add_node_files(self, _node, files):
        self.files = (self.files or {}) | {path.rpartition("/")[2]: data for path, data in files.items()}


class StaticNode:
    """A node with the files of a test, and its kubelet."""

    def __init__(self, files=None, *, nodes=None, installation=(), is_kept=False):
        parts = SchedulerContext()
        self.clock, self.events = parts.clock, []
        self.nodes, self.pods = parts.informers.of(kinds.NODES), parts.informers.of(kinds.PODS)
        self.pods.add_index(BY_NODE, node_of_pod)
        self.server, self.runtime, self.changed, self.lost = Server(self.pods), Runtime(files), [], []
        recorder = SimpleNamespace(record_on=lambda *event: self.events.append(event[-1]))
        context = SimpleNamespace(
            client=self.server,
            clock=parts.clock,
            informers=parts.informers,
            recorder=SimpleNamespace(of=lambda _component: recorder),
            metrics=parts.context.metrics,
            shared={},
            settings=SimpleNamespace(installation=Installation(files=dict(installation))),
        )
        contents = SimpleNamespace(
            is_kept=lambda _volume: is_kept,
            on_node_change=self.changed.append,
            on_node_loss=self.lost.append,
        )
        self.programs = running_programs(context)
        self.static = StaticPods(context, self.runtime, contents)
        fill(self.nodes, [node()] if nodes is None else nodes, 1)
        fill(self.pods, [], 1)

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.static.run())
        await yield_to_loop(30)
        yield self.server.writes
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def write(self, **files):
        """Change the files of the node, by their names without an ending."""
        self.runtime.files = {f"{name}.yaml": data for name, data in files.items()}
        self.changed[0]("n")
        await self.pass_time(0.1)

    async def pass_time(self, seconds):
        self.clock.advance(seconds)
        await yield_to_loop(30)

    def pod(self):
        view = self.pods.lister.get("ns", "web-n")
        return None if view is None else view.object

    async def change(self, pod, **metadata):
        status = metadata.pop("status", pod.get("status"))
        self.pods.put({**pod, "status": status, "metadata": {**pod["metadata"], **metadata}})
        await yield_to_loop(30)
        return self.pod()


CREATED = ("create", "web-n")


@pytest.fixture(autouse=True)
def no_reconciliation_fails(caplog):
    yield
    records = [record for record in caplog.get_records("call") if record.name.startswith("mockube.client")]
    assert [record.getMessage() for record in records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    ("files", "writes"),
    [
        (None, []),
        ({}, []),
        ({"web.yaml": WEB}, [CREATED]),
        ({".web.yaml": WEB}, []),
        ({"a.yaml": b"kind: none", "web.yaml": WEB}, [CREATED]),
    ],
)
async def test_pods_are_those_of_the_manifests(files, writes):
    async with StaticNode(files).running() as found:
        assert found == writes


@pytest.mark.parametrize(
    "nodes", [[], [node(**STOPPED)], [{**node(), "metadata": {"name": "n", "resourceVersion": "1"}}]]
)
async def test_node_without_a_kubelet_has_no_static_pods(nodes):
    async with StaticNode({"web.yaml": WEB}, nodes=nodes).running() as writes:
        assert writes == []


async def test_kubelet_that_begins_again_reads_its_manifests():
    found = StaticNode({"web.yaml": WEB}, nodes=[node(**STOPPED)])
    async with found.running() as writes:
        found.nodes.put(node())
        await yield_to_loop(30)
        assert writes == [CREATED]
        found.nodes.put(node(x="y"))
        found.runtime.files = {}
        await yield_to_loop(30)
        assert writes == [CREATED], "nothing that concerns it has changed"
        found.nodes.put(node(uid="another"))
        await yield_to_loop(30)
        assert writes == [CREATED, ("delete", "web-n", None)]


async def test_files_are_read_when_nothing_was_written_for_a_while():
    found = StaticNode({})
    async with found.running() as writes:
        found.runtime.files = {"web.yaml": WEB}
        found.changed[0]("n")
        await found.pass_time(0.09)
        assert writes == []
        await found.pass_time(0.02)
        assert writes == [CREATED]


async def test_changed_manifest_replaces_its_pod_and_a_removed_one_deletes_it():
    found = StaticNode({"web.yaml": WEB})
    async with found.running() as writes:
        await found.write(web=OTHER)
        assert writes == [CREATED, ("delete", "web-n", None), CREATED]
        assert found.pod()["spec"]["containers"][0]["image"] == "z"
        await found.write()
        assert writes[3:] == [("delete", "web-n", None)]


async def test_pod_that_is_being_deleted_is_not_deleted_once_more():
    found = StaticNode({"web.yaml": WEB})
    async with found.running() as writes:
        await found.change(found.pod(), deletionTimestamp="2030-01-01T00:00:00Z")
        await found.write()
        assert writes == [CREATED]


async def test_deleted_mirror_pod_has_the_status_of_the_one_before():
    found = StaticNode({"web.yaml": WEB})
    async with found.running() as writes:
        before = await found.change(found.pod(), status=RUNNING)
        await found.pass_time(1)
        await found.change(before, deletionTimestamp="2030-01-01T00:00:00Z")
        await found.pass_time(0.49)
        assert writes == [CREATED]
        await found.pass_time(0.02)
        assert writes == [CREATED, ("delete", "web-n", 0), CREATED]
        after = found.pod()
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert found.static.status_to_restore(after) == RUNNING
        assert found.programs.runs("httpd") == {"n": 3}, "its containers run on"
        assert found.static.status_to_restore({**after, "status": {"startTime": "t"}}) is None
        changed = {
            **after["metadata"],
            "annotations": {**after["metadata"]["annotations"], "kubernetes.io/config.hash": "x"},
        }
        assert found.static.status_to_restore({**after, "metadata": changed}) is None


async def test_mirror_pod_without_a_manifest_is_deleted_and_another_pod_is_not():
    found = StaticNode({"web.yaml": WEB})
    async with found.running() as writes:
        metadata, spec = found.pod()["metadata"], found.pod()["spec"]
        found.pods.put(
            {"metadata": {**metadata, "name": "plain", "annotations": {}}, "spec": spec, "status": {}}
        )
        found.pods.put({"metadata": {**metadata, "name": "stray"}, "spec": spec, "status": {}})
        await yield_to_loop(30)
        assert writes == [CREATED, ("delete", "stray", None)]


async def test_files_of_a_node_that_is_gone_are_not_read():
    found = StaticNode({"web.yaml": WEB}, nodes=[])
    async with found.running() as writes:
        found.changed[0]("n")
        await found.pass_time(1)
        assert writes == []


async def test_pod_of_the_name_that_another_has_created_is_restored():
    found = StaticNode({"web.yaml": WEB})
    async with found.running() as writes:
        before = await found.change(found.pod(), status=RUNNING)
        found.pods.remove(before)
        await yield_to_loop(30)
        assert writes == [CREATED, CREATED]


async def test_status_of_another_version_is_not_restored():
    found = StaticNode({"web.yaml": WEB})
    async with found.running():
        await found.change(found.pod(), status=RUNNING)
        await found.write(web=OTHER)
        assert found.static.status_to_restore(found.pod()) is None


async def test_manifest_is_that_of_its_pod():
    found = StaticNode({"web.yaml": WEB})
    async with found.running():
        pod = found.pod()
        assert found.static.owns(pod)
        annotations = dict(pod["metadata"]["annotations"])
        del annotations["kubernetes.io/config.mirror"]
        assert not found.static.owns({**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
        assert not found.static.owns({**pod, "metadata": {**pod["metadata"], "name": "other"}})
        assert not found.static.owns({**pod, "spec": {"nodeName": "other"}})
        await found.write()
        assert not found.static.owns(pod)


async def test_time_of_a_manifest_is_that_of_its_first_version():
    found = StaticNode({"web.yaml": WEB})
    async with found.running():
        seen = found.pod()["metadata"]["annotations"]["kubernetes.io/config.seen"]
        found.clock.advance(60)
        found.pods.remove(found.pod())
        await yield_to_loop(30)
        assert found.pod()["metadata"]["annotations"]["kubernetes.io/config.seen"] == seen
        await found.write(web=OTHER)
        assert found.pod()["metadata"]["annotations"]["kubernetes.io/config.seen"] != seen


# --- problems


async def test_manifest_that_cannot_be_read_is_reported_once():
    found = StaticNode({})
    async with found.running():
        for _ in range(2):
            await found.write(bad=b"kind: none")
        assert len(found.events) == 1
        assert found.events[0].startswith(f'Could not process manifest file "{FOLDER}/bad.yaml": ')
        await found.write(bad=b"[")
        assert len(found.events) == 2
        await found.write()
        await found.write(bad=b"[")
        assert len(found.events) == 3


@pytest.mark.parametrize(
    ("error", "problems"),
    [
        (AlreadyExists("there"), []),
        (Forbidden("no"), ['Failed creating a mirror pod for "ns/web-n": no']),
    ],
)
async def test_refused_pod_is_tried_again(error, problems):
    found = StaticNode({"web.yaml": WEB})
    found.server.error = error
    async with found.running() as writes:
        await found.pass_time(10)
        assert writes == [CREATED] * (2 if problems else 1)
        assert found.events == problems
        found.server.error = None
        await found.pass_time(10)
        assert (found.pod() is not None) is bool(problems)


async def test_pod_that_is_gone_already_needs_no_deletion():
    found = StaticNode({"web.yaml": WEB})
    async with found.running() as writes:
        found.server.error = NotFound("gone")
        await found.write()
        await found.pass_time(100)
        assert writes == [CREATED, ("delete", "web-n", None)]


# --- programs


@pytest.mark.parametrize(
    ("status", "runs"),
    [
        ({}, {}),
        (RUNNING, {"n": 3}),
        ({"containerStatuses": [{"name": "c", "state": {"waiting": {}}}]}, {}),
    ],
)
async def test_program_runs_by_the_status_of_its_pod(status, runs):
    found = StaticNode({"web.yaml": WEB})
    async with found.running():
        await found.change(found.pod(), status=status)
        assert found.programs.runs("httpd") == runs


async def test_programs_go_on_without_their_kubelet():
    found = StaticNode({"web.yaml": WEB})
    async with found.running():
        await found.change(found.pod(), status=RUNNING)
        found.nodes.put(node(**STOPPED))
        await yield_to_loop(30)
        assert found.programs.runs("httpd") == {"n": 3}
        found.nodes.remove(node())
        await found.change(found.pod(), status={"containerStatuses": []})
        assert found.programs.runs("httpd") == {"n": 3}


async def test_programs_of_a_kubelet_that_was_stopped_before_are_those_of_its_mirror_pods():
    first = StaticNode({"web.yaml": WEB})
    async with first.running():
        mirror = {**first.pod(), "status": RUNNING}
    found = StaticNode({"web.yaml": WEB}, nodes=[])
    async with found.running():
        found.pods.put(mirror)
        plain = {**mirror["metadata"], "name": "plain", "annotations": {}}
        spec = {**mirror["spec"], "containers": [{"name": "c", "image": "x", "command": ["sh"]}]}
        found.pods.put({**mirror, "metadata": plain, "spec": spec})
        found.nodes.put(node(**STOPPED))
        await yield_to_loop(30)
        assert (found.programs.runs("httpd"), found.programs.runs("sh")) == ({"n": 3}, {})


# --- the files of an installation


def installation(manifest=WEB, name="n"):
    return {name: {f"{FOLDER}/web.yaml": manifest.decode()}}


@pytest.mark.parametrize(
    ("options", "writes", "runs"),
    [
        ({"installation": installation()}, [CREATED], {"n": 0}),
        ({"installation": installation(), "is_kept": True}, [], {}),
        ({"installation": installation(name="other")}, [], {}),
    ],
)
async def test_files_of_an_installation_are_written_once(options, writes, runs):
    found = StaticNode(**options)
    async with found.running() as done:
        assert done == writes
        assert found.programs.runs("httpd") == runs
        now = found.clock.now()
        pod = found.pod() or {"metadata": {"annotations": {}}}
        began = now - timedelta(seconds=30) if writes else now
        assert found.static.time_of_step(pod, now) == began
        for status in (
            RUNNING,
            {"containerStatuses": [{"state": {"terminated": {}}}]},
            {"containerStatuses": [{"restartCount": 1}]},
        ):
            assert found.static.time_of_step({**pod, "status": status}, now) == now
        await found.write()
        assert found.pod() is None, "nobody writes them again"


async def test_lost_files_of_an_installation_are_written_again():
    found = StaticNode(installation=installation())
    async with found.running():
        await found.write()
        found.lost[0]("other")
        found.lost[0]("n")
        found.runtime.files = None
        found.changed[0]("n")
        await found.pass_time(0.1)
        assert found.pod() is not None


@pytest.mark.parametrize(
    ("nodes", "seconds", "image"),
    [
        ([node()], 0, None),
        ([node()], 10, "x10.0.0.1$(NODE_IP:peer)"),
        ([node(), node("peer", address="10.0.0.2")], 0, "x10.0.0.110.0.0.2"),
    ],
)
async def test_files_wait_for_the_addresses_of_peers(nodes, seconds, image):
    image_text = f"image: 'x{NODE_ADDRESS}{address_of_peer('peer')}'"
    manifest = WEB.replace(b"image: x", image_text.encode())
    found = StaticNode(nodes=nodes, installation=installation(manifest))
    async with found.running():
        await found.pass_time(seconds)
        await found.pass_time(0.05 if seconds else 0)
        assert (found.pod() and found.pod()["spec"]["containers"][0]["image"]) == image
