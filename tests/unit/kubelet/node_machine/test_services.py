"""The services that the programs of a node's machine ask: crictl, journalctl, systemctl and kubeadm, without a cluster."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.status import Forbidden, NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.kinds import NODES, PODS
from mockube.client.metrics.process import Metrics
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.image_service import PullFailed, StoredImage
from mockube.container_runtime.images.resolution import full_name
from mockube.container_runtime.load import Stats
from mockube.container_runtime.logs import LogLine
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.container_runtime.pod_log_paths import log_path
from mockube.container_runtime.runs import ContainerNotFound
from mockube.container_runtime.runtime import RuntimeProblem
from mockube.kubelet.installation import Installation
from mockube.kubelet.node_machine import cri_objects, services
from mockube.kubelet.node_machine.services import MachineServices
from tests.support.controllers.fake_caches import FakeCaches

AT, ENDED_AT = "2030-01-01T00:00:00Z", "2029-01-01T00:00:00Z"
ROLE = "node-role.kubernetes.io/control-plane"


def node(name, *, address="", control_plane=False, **status):
    labels = {ROLE: ""} if control_plane else {}
    addresses = [{"type": "InternalIP", "address": address}] if address else []
    return {"metadata": {"name": name, "labels": labels}, "status": {"addresses": addresses, **status}}


def container(name, *, runs=True, restarts=0, last=False):
    end = {"startedAt": ENDED_AT, "finishedAt": ENDED_AT, "exitCode": 1, "containerID": f"x://{name}-last"}
    state = {"running": {"startedAt": AT}} if runs else {"terminated": {**end, "containerID": f"x://{name}"}}
    return {
        "name": name, "state": state, "restartCount": restarts, "containerID": f"x://{name}",
        "lastState": {"terminated": end} if last else {},
    }  # fmt: skip


def pod(name, *containers, on="a", **spec):
    specs = [{"name": each["name"], "image": "nginx"} for each in containers]
    return {
        "metadata": {"name": name, "namespace": "d", "uid": f"uid-{name}"},
        "spec": {"nodeName": on, "containers": specs, **spec},
        "status": {"phase": "Running", "startTime": AT, "containerStatuses": [*containers]},
    }


WEB = pod("web", container("c", last=True, restarts=2), container("done", runs=False))
OTHER = pod("other", container("o"), on="b")


class Source:
    """A log of given lines, of which each read returns one."""

    def __init__(self, *texts):
        self.lines, self.is_closed = (
            [LogLine(parse_time(AT), 1 + index % 2, text) for index, text in enumerate(texts)],
            False,
        )

    def is_behind(self, _):
        return bool(self.lines)

    def advance(self, _):
        yield self.lines.pop(0)

    def close(self):
        self.is_closed = True


class Client:
    def __init__(self):
        self.objects, self.error, self.count = {}, None, 0

    async def get(self, _, key):
        self.count += 1
        if self.error is not None:
            raise self.error
        if key not in self.objects:
            raise NotFound("x")
        return self.objects[key]

    async def list(self, _, _namespace="", **options):
        self.options = options
        if self.error is not None:
            raise self.error
        return SimpleNamespace(items=self.objects.get("listed", []))


class Node:
    """The services of nodes whose pods and run-time a test gives."""

    def __init__(self, *nodes, pods=(WEB, OTHER), **settings):
        self.clock, self.client = SteppedClock(), Client()
        self.nodes, self.pods = [*nodes] or [node("a")], [*pods]
        fields = {"installation": Installation(), "server": "", "cluster_dns": "10.0.0.10", **settings}
        context = SimpleNamespace(
            client=self.client, clock=self.clock, informers=self, metrics=Metrics(self.clock), random=SeededRandom(), shared={},
            recorder=SimpleNamespace(of=lambda _: None), settings=SimpleNamespace(**fields),
        )  # fmt: skip
        self.calls, self.source, self.problem = [], Source(), None
        self.stored = [StoredImage(names=(full_name("nginx"), "nginx@sha256:1"))]
        self.services = MachineServices(context)
        self.services.connect(self, self, self)

    def of(self, resource):
        caches = FakeCaches({NODES: self.nodes, PODS: self.pods}, {PODS: {BY_NODE: node_of_pod}})
        self.synced = []

        async def wait_synced():
            self.calls.append(("synced", resource.plural))

        return SimpleNamespace(
            lister=caches.of(resource), add_handler=lambda _: None, wait_synced=wait_synced
        )

    async def ask(self, service, on="a", **arguments):
        return await self.services.answer(on, service, arguments)

    # --- the run-time, the images and the machines

    def stop_container(self, tree, name, grace):
        self.calls.append(("stop", tree["metadata"]["name"], name, grace))

    def kill(self, tree, name):
        self.calls.append(("kill", tree["metadata"]["name"], name))

    def container_stats(self, _, name):
        return Stats(cores=0.5, memory=7.0) if name == "c" else None

    def disk_usage(self, tree):
        return DiskUsage({"c": 11}, {}) if tree["metadata"]["name"] == "web" else None

    async def logs(self, _, name, run):
        if self.problem is not None:
            raise self.problem
        self.calls.append(("logs", name, run.restarts))
        return self.source

    async def exec(self, _, name, request):
        if self.problem is not None:
            raise self.problem
        self.calls.append(("exec", name, request.command, request.has_input, request.has_terminal))

        async def command(streams):
            while streams.stdin is not None and (data := await streams.stdin.read(9)):
                await streams.write(1, data)
            return 3

        return command

    def pull_image(self, image, *, has_credentials):
        if not has_credentials:
            raise PullFailed("no basic auth")
        return StoredImage(names=(image, "x@sha256:2") if image == "x" else (image,))

    def add_image(self, name, image):
        self.calls.append(("add", name, image.names))

    def remove_image(self, name, names):
        self.calls.append(("remove", name, names))

    def list_images(self, _):
        return self.stored

    def find(self, *_):
        return None

    def children(self, *_):
        return ()


NOT_FOUND = "rpc error: code = NotFound desc = an error occurred when try to find"


@pytest.mark.parametrize(
    ("service", "arguments", "message"),
    [
        ("nosuch", {}, "the machine of node a has no service nosuch"),
        ("cri.inspect", {"id": "x"}, f'{NOT_FOUND} container "x": not found'),
        ("cri.inspect", {"id": "o"}, f'{NOT_FOUND} container "o": not found'),
        ("cri.stopp", {"id": "x"}, f'{NOT_FOUND} sandbox "x": not found'),
        ("cri.stopp", {"id": cri_objects.sandbox_id(OTHER)}, f"{NOT_FOUND} sandbox "),
        ("cri.rm", {"id": "done", "force": True}, "keeps the containers that have ended"),
        ("cri.rm", {"id": "c", "force": False}, 'container "c" is running, please stop it first'),
        ("cri.rmp", {"id": cri_objects.sandbox_id(WEB), "force": False}, "is running, please stop it first"),
        ("cri.pull", {"image": "y", "has_credentials": False}, "pulling image: no basic auth"),
        ("cri.rmi", {"names": [full_name("nginx")]}, 'the image "nginx" is in use by a container'),
        ("cri.exec.next", {"session": 1}, "the command has ended"),
        ("cri.logs", {"id": "done", "previous": True}, 'previous terminated container "done" in pod "web" not found'),
        ("cri.logs", {"id": "c", "since": "x"}, 'failed to parse the time "x"'),
        ("token.delete", {"token": "abc.d"}, 'failed to delete bootstrap token "abc"'),
    ],
)  # fmt: skip
async def test_request_that_fails(service, arguments, message):
    with pytest.raises(ServiceFailed, match=message.replace("(", r"\(")) as error:
        await Node().ask(service, **arguments)
    assert message in str(error.value)


async def test_node_that_is_gone_has_no_services():
    with pytest.raises(ServiceFailed, match="the machine of node z has no service units"):
        await Node().ask("units", on="z")


@pytest.mark.parametrize("error", [Forbidden("no"), NoResponse("no")])
async def test_error_of_the_api_server_is_that_of_the_service(error):
    subject = Node()
    subject.client.error = error
    with pytest.raises(ServiceFailed):
        await subject.ask("tokens")


STOPPED = [("stop", "web", "c", 0.0), ("kill", "web", "c")]


@pytest.mark.parametrize(
    ("service", "arguments", "calls"),
    [
        ("cri.stop", {"id": "c"}, STOPPED),
        ("cri.stop", {"id": "done"}, []),
        ("cri.stop", {"id": "c-last"}, []),
        ("cri.rm", {"id": "c", "force": True}, STOPPED),
        ("cri.stopp", {"id": cri_objects.sandbox_id(WEB)}, STOPPED),
        ("cri.rmp", {"id": cri_objects.sandbox_id(WEB), "force": True}, STOPPED),
        ("cri.rmi", {"names": ["unused"]}, [("remove", "a", ["unused"])]),
    ],
)
async def test_containers_and_images_that_crictl_removes(service, arguments, calls):
    subject = Node()
    assert await subject.ask(service, **arguments) is None
    assert subject.calls == calls


async def test_pod_that_has_ended_is_removed_without_force():
    ended = pod("web", container("c", runs=False))
    subject = Node(pods=[ended])
    await subject.ask("cri.rmp", id=cri_objects.sandbox_id(ended), force=False)
    assert subject.calls == []


@pytest.mark.parametrize(("image", "reference"), [("x", "sha256:2"), ("y", "y")])
async def test_image_that_is_pulled_is_on_the_node(image, reference):
    subject = Node()
    assert await subject.ask("cri.pull", image=image, has_credentials=True) == reference
    [(_, name, names)] = subject.calls
    assert (name, names[0]) == ("a", image)


async def test_objects_of_the_run_time_are_those_of_the_node():
    subject = Node()
    found = await subject.ask("cri.containers")
    assert [each["id"] for each in found["containers"]] == ["c", "c-last", "done"]
    assert [each["id"] for each in found["sandboxes"]] == [cri_objects.sandbox_id(WEB)]
    [image] = await subject.ask("cri.images")
    assert (image["repoDigests"], image["inUse"]) == (["nginx@sha256:1"], True)
    [image] = await Node(pods=[OTHER]).ask("cri.images")
    assert image["inUse"] is False
    sandbox = await subject.ask("cri.inspect", id=cri_objects.sandbox_id(WEB))
    assert sandbox["info"]["containers"] == ["c", "done"]


CLAIM = {"name": "claimed", "persistentVolumeClaim": {"claimName": "data"}}
OWN = {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}}


@pytest.mark.parametrize(
    ("volumes", "objects", "bound"),
    [
        ([CLAIM], {Key("d", "data"): {"spec": {"volumeName": "pv"}}}, {"claimed"}),
        ([OWN], {Key("d", "web-own"): {"spec": {"volumeName": "pv"}}}, {"own"}),
        ([CLAIM, OWN], {Key("d", "web-own"): {"spec": {"volumeName": "pv"}}}, {"own"}),
        ([CLAIM], {Key("d", "data"): {"spec": {}}}, set()),
        ([CLAIM], {Key("d", "data"): {"spec": {"volumeName": "gone"}}}, set()),
        ([{"name": "e", "emptyDir": {}}], {Key("d", ""): {"spec": {"volumeName": "pv"}}}, set()),
        (None, {}, set()),
    ],
)
async def test_volumes_that_are_bound_to_claims(volumes, objects, bound):
    subject = Node()
    volume = {"spec": {"hostPath": {"path": "/x"}}}
    subject.client.objects = {Key("", "pv"): volume, Key("", ""): volume, **objects}
    tree = pod("web", container("c"), volumes=volumes)
    assert await subject.services._bound_volumes(tree) == dict.fromkeys(bound, volume)


async def test_container_is_inspected_with_its_log():
    found = await Node().ask("cri.inspect", id="c-last")
    assert found["status"]["logPath"] == log_path(WEB, "c", 1)


async def test_usage_of_containers_that_run():
    both = pod("web", container("c"), container("d"), container("done", runs=False))
    plain = pod("plain", container("c"))
    found = await Node(pods=[both, plain]).ask("cri.stats")
    assert [
        (
            each["attributes"]["id"],
            each["cpu"]["usageNanoCores"]["value"],
            each["memory"]["workingSetBytes"]["value"],
            each["writableLayer"]["usedBytes"]["value"],
        )
        for each in found
    ] == [("c", "500000000", "7", "11"), ("d", "0", "0", "0"), ("c", "500000000", "7", "0")]


@pytest.mark.parametrize(
    ("status", "name", "version"),
    [
        ({"nodeInfo": {"containerRuntimeVersion": "cri-o://1.2"}}, "cri-o", "1.2"),
        ({"nodeInfo": {}}, "containerd", ""),
        ({}, "containerd", ""),
    ],
)
async def test_version_and_configuration_of_the_run_time(status, name, version):
    subject = Node(node("a", **status))
    found = await subject.ask("cri.version")
    assert (found["runtimeName"], found["runtimeVersion"]) == (name, version)
    info = await subject.ask("cri.info")
    assert [each["type"] for each in info["status"]["conditions"]] == ["RuntimeReady", "NetworkReady"]


# --- logs

LOGS = {"id": "c", "tail": -1, "follow": False, "timestamps": False}


async def test_log_is_read_to_its_end():
    subject = Node()
    source = subject.source = Source(b"one\n", b"tw\xff")
    found = await subject.ask("cri.logs", **LOGS)
    assert found == {"lines": [(1, "one\n"), (2, "tw\udcff")], "reader": 0, "waits": True}
    assert source.is_closed
    assert subject.calls == [("logs", "c", 2)]
    subject.source = Source(b"one\n")
    found = await subject.ask("cri.logs", **{**LOGS, "timestamps": True})
    assert found["lines"] == [(1, "2030-01-01T00:00:00.000000000Z one\n")]


@pytest.mark.parametrize(
    ("arguments", "restarts"),
    [({"id": "c"}, 2), ({"id": "c-last"}, 1), ({"id": "c", "previous": True}, 1), ({"id": "done"}, 0)],
)
async def test_log_is_that_of_a_run(arguments, restarts):
    subject = Node()
    await subject.ask("cri.logs", **{**LOGS, **arguments})
    assert subject.calls == [("logs", arguments["id"].partition("-")[0], restarts)]


async def test_log_that_is_followed_stays_open_until_the_container_ends():
    subject = Node()
    subject.source = Source(b"one\n")
    number = (await subject.ask("cri.logs", **{**LOGS, "follow": True}))["reader"]
    assert number > 0
    subject.source.lines = [LogLine(parse_time(AT), 1, b"two\n")]
    found = await subject.ask("cri.logs", **{**LOGS, "follow": True, "reader": number, "id": "gone"})
    assert found == {"lines": [(1, "two\n")], "reader": number, "waits": True}
    subject.services._pods.lister = FakeCaches({PODS: []}).of(PODS)
    found = await subject.ask("cri.logs", **{**LOGS, "follow": True, "reader": number})
    assert (found["reader"], subject.source.is_closed) == (0, True)


async def test_log_begins_at_a_time_or_with_its_last_lines():
    subject = Node()
    subject.source = Source(b"one\n", b"two\n")
    assert (await subject.ask("cri.logs", **{**LOGS, "tail": 1}))["lines"] == [(2, "two\n")]
    subject.source = Source(b"one\n")
    assert (await subject.ask("cri.logs", **{**LOGS, "since": "2030-01-01T00:00:01Z"}))["lines"] == []


async def test_log_that_cannot_be_read():
    subject = Node(pods=[pod("web", container("c", runs=False))])
    subject.problem = RuntimeProblem("no file")
    with pytest.raises(ServiceFailed, match="no file"):
        await subject.ask("cri.logs", **LOGS)


async def test_files_with_logs(monkeypatch):
    subject = Node()
    subject.source = Source(b"one\n", b"part")
    path = log_path(WEB, "c", 2)
    found = await subject.ask("logs", paths=[path, "/other", log_path(OTHER, "o", 0)])
    stamp = "2030-01-01T00:00:00.000000000Z"
    assert found == {path: f"{stamp} stdout F one\n{stamp} stderr P part\n"}
    assert subject.source.is_closed
    monkeypatch.setattr(services, "MAX_LOG_BYTES", 5)
    subject.source = Source(b"one\n")
    assert await subject.ask("logs", paths=[path]) == {path: " one\n"}


# --- commands


async def test_command_has_its_input():
    subject = Node()
    number = await subject.ask("cri.exec", id="c", command=["cat"], stdin=True, tty=False)
    assert subject.calls == [("exec", "c", ["cat"], True, False)]
    assert (await subject.ask("cri.exec.next", session=number))["needs_input"]
    await subject.ask("cri.exec.input", session=number, data="a")
    assert (await subject.ask("cri.exec.next", session=number))["output"] == [(1, "a")]
    await subject.ask("cri.exec.input", session=number, data="")
    assert (await subject.ask("cri.exec.next", session=number))["code"] == 3


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (ContainerNotFound("c"), "rpc error: code = Unknown desc = container is in CONTAINER_EXITED state"),
        (RuntimeProblem("no shell"), "no shell"),
    ],
)
async def test_command_that_cannot_run(problem, message):
    subject = Node()
    subject.problem = problem
    with pytest.raises(ServiceFailed) as error:
        await subject.ask("cri.exec", id="c", command=["x"], stdin=False, tty=True)
    assert str(error.value) == f"execing command in container: {message}"


# --- the machine, the journal and kubeadm


@pytest.mark.parametrize(
    ("nodes", "server", "expected"),
    [
        ([node("a", address="10.0.0.1")], "", ["https://127.0.0.1:6443"]),
        ([node("a")], "https://x", ["https://x"]),
        ([node("a", control_plane=True)], "https://x", ["https://x"]),
        (
            [
                node("m10", address="10.0.0.3", control_plane=True),
                node("m2", address="10.0.0.2", control_plane=True),
                node("m1", address="10.0.0.1", control_plane=True),
                node("a", address="10.0.0.9"),
            ],
            "https://x",
            ["https://10.0.0.1:6443", "https://10.0.0.2:6443", "https://10.0.0.3:6443"],
        ),
    ],
)
def test_api_servers_are_those_of_control_plane_nodes(nodes, server, expected):
    subject = Node(*nodes, server=server)
    assert subject.services._api_servers() == expected
    assert subject.services.api_server() == expected[0]


async def test_authority_is_requested_again_after_ten_seconds():
    subject = Node()
    maps, ready = subject.client.objects, subject.services.wait_ready
    await ready()
    assert subject.calls == [("synced", "nodes"), ("synced", "pods")]
    maps[Key("kube-system", "kube-root-ca.crt")] = {"data": {"ca.crt": "CA"}}
    await ready()
    assert (subject.services.authority(), subject.client.count) == (b"", 1)
    subject.clock.advance(10)
    for _ in range(2):
        await ready()
        assert (subject.services.authority(), subject.client.count) == (b"CA", 2)
        subject.clock.advance(10)


@pytest.mark.parametrize("error", [Forbidden("x"), NoResponse("x")])
async def test_authority_may_be_refused(error):
    subject = Node()
    subject.client.error = error
    await subject.services.wait_ready()
    assert subject.services.authority() == b""


def test_administrator_is_read_once(tmp_path):
    paths = [tmp_path / name for name in ("crt", "key")]
    subject = Node(installation=Installation(administrator=tuple(map(str, paths))))
    assert subject.services._find_administrator() is None
    for path in paths:
        path.write_text(path.name)
    assert subject.services._find_administrator() == ("crt", "key")
    paths[0].unlink()
    assert subject.services.credentials(node("a")).administrator == ("crt", "key")
    assert Node().services._find_administrator() is None


async def test_machine_has_the_version_and_the_time_of_its_node():
    subject = Node(node("a", nodeInfo={"kubeletVersion": "v1.37.2"}))
    subject.nodes[0]["metadata"]["creationTimestamp"] = AT
    found = await subject.ask("machine")
    assert (found["version"], found["created"]) == ("v1.37.2", AT)
    assert {"sockets", "interfaces", "routes"} <= found.keys()
    bare = await Node().ask("machine")
    assert (bare["version"], bare["created"]) == ("", "")
    assert subject.services.cluster_dns() == "10.0.0.10"


@pytest.mark.parametrize(
    ("found", "text"), [({"data": {"ClusterConfiguration": "a: b"}}, "a: b"), ({}, ""), (None, "")]
)
async def test_configuration_of_kubeadm(found, text):
    subject = Node()
    if found is not None:
        subject.client.objects[Key("kube-system", "kubeadm-config")] = found
    assert await subject.ask("kubeadm.configuration") == text


async def test_journal_is_in_the_order_of_time():
    subject = Node(pods=[WEB])
    subject.nodes[0]["metadata"]["creationTimestamp"] = "2030-01-01T00:00:05Z"
    about = {"kind": "Pod", "namespace": "d", "name": "web", "uid": "uid-web"}
    event = {"involvedObject": about, "reason": "Pulled", "type": "Normal", "source": {"host": "a"}}
    subject.client.objects["listed"] = [
        {**event, "message": "late", "firstTimestamp": "2030-01-01T00:00:09Z"},
        {**event, "message": "elsewhere", "firstTimestamp": AT, "source": {"host": "b"}},
    ]
    found = await subject.ask("journal")
    assert subject.client.options == {"field_selector": "source=kubelet", "limit": services.MAX_EVENTS}
    times = [each["at"] for each in found]
    assert times == sorted(times)
    assert "SyncLoop ADD" in found[0]["text"]
    assert 'message="late"' in found[-1]["text"]
    assert not any("elsewhere" in each["text"] for each in found)
    assert {each["unit"] for each in found} == {"kubelet.service", "containerd.service"}


async def test_tokens_are_created_with_the_hash_of_the_authority():
    subject, created = Node(), []

    async def create(_, body):
        created.append(body["stringData"])

    subject.client.create = create
    arguments = {"ttl": 60, "description": "d", "usages": ["signing"], "groups": ["g"]}
    found = await subject.ask("token.create", token="abcdef.0123456789abcdef", **arguments)
    assert found == {"token": "abcdef.0123456789abcdef", "server": "127.0.0.1:6443", "hash": ""}
    assert (created[0]["usage-bootstrap-signing"], created[0]["auth-extra-groups"]) == ("true", "g")
    assert len(await subject.ask("token.generate")) == 23
    assert await subject.ask("tokens") == []


async def test_units_and_etcd_are_asked():
    subject, asked = Node(), []

    async def note(*arguments):
        asked.append(arguments)
        return "answer"

    subject.services._units = SimpleNamespace(states=lambda tree: tree["metadata"]["name"], change=note)
    subject.services._etcd = SimpleNamespace(status=note, check=note)
    assert await subject.ask("units") == "a"
    await subject.ask("unit.change", unit="kubelet", action="stop")
    assert await subject.ask("etcd") == "answer"
    await subject.ask("etcd.check", revision=7)
    assert [arguments[1:] or arguments for arguments in asked] == [("kubelet", "stop"), (), (7,)]
