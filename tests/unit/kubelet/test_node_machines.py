"""The machines of simulated nodes with a real server, on a clock that the test steps."""

import pytest

from mockube.container_runtime.runtime import ExecRequest
from mockube.container_runtime.streams import InputStream
from mockube.controller_manager.components import SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.controllers.nodelifecycle.controller import NODE_LIFECYCLE
from mockube.kubelet.containers import Containers
from tests.support.controllers.simulated import NODES, simulated_cluster
from tests.support.node_machine import CollectedStreams

STOPPED = "mockube.dev/stopped-units"
NODE = f"{NODES}/node-1"


class Machine:
    def __init__(self, cluster):
        self.cluster = cluster
        self.containers = cluster.manager.work._shared[Containers]

    async def run(self, script, stdin=None, node="node-1"):
        """Run a script on a node; return its exit code and its output."""
        tree = await self.cluster.get(f"{NODES}/{node}")
        request = ExecRequest(command=["bash", "-c", script], has_input=stdin is not None)
        source = None
        if stdin is not None:
            source = InputStream()
            await source.feed(stdin)
            await source.end()
        streams = CollectedStreams(source)
        code = await (await self.containers.machines.exec(tree, request))(streams)
        await self.cluster.manager.settle()
        return code, streams.output.decode()

    async def output(self, script, **options):
        return (await self.run(script, **options))[1]

    async def ready(self):
        conditions = (await self.cluster.get(NODE))["status"]["conditions"]
        return next((each["status"], each["message"]) for each in conditions if each["type"] == "Ready")


@pytest.fixture
async def cluster():
    async with simulated_cluster(nodes=1) as cluster:
        await cluster.server.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        yield cluster


@pytest.fixture
def machine(cluster):
    return Machine(cluster)


async def test_node_and_containers_have_the_same_files(cluster, machine):
    await machine.run("echo from the node > /srv/x")
    mounts = [{"name": "host", "mountPath": "/host"}]
    script = "cat /host/srv/x; echo from the pod > /host/srv/y; cat /host/etc/hostname; sleep 100"
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}
    await cluster.run(containers=[container], volumes=[{"name": "host", "hostPath": {"path": "/"}}])
    await cluster.manager.step(5)
    assert await machine.output("cat /srv/y") == "from the pod\n"
    assert await machine.output("crictl logs $(crictl ps -q)") == "from the node\nnode-1\n"


async def test_programs_of_a_node_know_its_pods(cluster, machine):
    await cluster.run(containers=[{"name": "web", "image": "nginx:1.29"}])
    await cluster.manager.step(5)
    assert await machine.output("crictl exec $(crictl ps -q --name web) cat /etc/hostname") == "p\n"
    log = await machine.output("cat /var/log/containers/p_default_web-*.log")
    assert " stdout F " in log or " stderr F " in log
    assert '"SyncLoop ADD" source="api" pods=["default/p"]' in await machine.output("journalctl -u kubelet")
    assert "nginx" in await machine.output("ps aux")
    assert await machine.output("nosuch") == "bash: line 1: nosuch: command not found\n"


async def test_stopped_container_is_started_again(cluster, machine):
    await cluster.run(containers=[{"name": "web", "image": "nginx:1.29"}])
    await cluster.manager.step(5)
    first = await machine.output("crictl ps -q")
    await machine.run(f"crictl stop {first}")
    await cluster.manager.step(30)
    assert (await cluster.pod())["status"]["containerStatuses"][0]["restartCount"] == 1
    assert await machine.output("crictl ps -q") not in ("", first)
    assert first[:13] in await machine.output("crictl ps -a --state exited")


async def test_stopped_kubelet_makes_the_node_not_ready():
    runnables = (SIMULATED_NODES, SIMULATED_PODS)
    async with simulated_cluster(nodes=1, runnables=(*runnables, NODE_LIFECYCLE)) as cluster:
        machine = Machine(cluster)
        await machine.run("systemctl stop kubelet")
        assert await machine.run("systemctl is-active kubelet") == (3, "inactive\n")
        await cluster.manager.step(30)
        assert (await machine.ready())[0] == "True"
        await cluster.manager.step(60)
        assert (await machine.ready())[0] == "Unknown"
        await machine.run("systemctl start kubelet")
        await cluster.manager.step(15)
        assert await machine.ready() == ("True", "kubelet is posting ready status")
        assert STOPPED not in (await cluster.get(NODE))["metadata"]["annotations"]


async def test_kubelet_without_a_container_runtime_is_not_ready(cluster, machine):
    await machine.run("systemctl stop containerd")
    await cluster.manager.step(20)
    assert (await machine.ready())[0] == "True"
    await cluster.manager.step(20)
    assert await machine.ready() == ("False", "container runtime is down")
    await cluster.run(name="late")
    await cluster.manager.step(200)
    assert "startTime" not in (await cluster.pod("late"))["status"]
    assert "PLEG is not healthy" in (await machine.ready())[1]
    await machine.run("systemctl start containerd")
    await cluster.manager.step(15)
    assert (await machine.ready())[0] == "True"
    assert (await cluster.pod("late"))["status"]["phase"] == "Running"


async def test_kubelet_with_wrong_settings_starts_when_they_are_right(cluster, machine):
    await machine.run(
        "sed -i s#pki/ca.crt#pki/CA.crt# /var/lib/kubelet/config.yaml; systemctl restart kubelet"
    )
    assert "auto-restart" in await machine.output("systemctl status kubelet")
    await cluster.manager.step(25)
    journal = await machine.output("journalctl -u kubelet --no-pager")
    assert "unable to load client CA file /etc/kubernetes/pki/CA.crt" in journal
    assert "restart counter is at 2" in journal
    await machine.run("sed -i s#pki/CA.crt#pki/ca.crt# /var/lib/kubelet/config.yaml")
    await cluster.manager.step(12)
    assert await machine.run("systemctl is-active kubelet") == (0, "active\n")


async def test_command_reads_its_input(machine):
    assert await machine.run("cat; exit 3", stdin=b"hello") == (3, "hello")


async def test_annotation_stops_a_unit_as_systemctl_does(cluster, machine):
    await cluster.annotate(NODE, STOPPED, "kubelet, nonsense=7")
    assert await machine.run("systemctl is-active kubelet containerd") == (0, "inactive\nactive\n")


async def test_tokens_are_secrets(cluster, machine):
    await cluster.server.patch(
        NODE, {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, kind="merge-patch+json"
    )
    await cluster.manager.step(2)
    token = (await machine.output("kubeadm token create --ttl 2h")).strip()
    secret = await cluster.get(f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{token[:6]}")
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    assert token in await machine.output("kubeadm token list")
    await machine.run(f"kubeadm token delete {token}")
    assert await machine.output("kubeadm token list") == ""
    assert "was not of the form" in await machine.output("kubeadm token create x")


async def test_claimed_volume_is_mounted_from_the_path_of_its_persistent_volume(cluster, machine):
    amounts = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    spec = {**amounts, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
    await cluster.server.post("/api/v1/persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": spec})
    requests = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-1"}
    claim = {"metadata": {"name": "claimed"}, "spec": {**amounts, **requests}}
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    await cluster.server.post(claims, claim)
    bound = {"status": {"phase": "Bound"}}
    await cluster.server.patch(f"{claims}/claimed/status", bound)
    await cluster.server.patch("/api/v1/persistentvolumes/pv-1/status", bound)
    mounts = [{"name": "v", "mountPath": "/mnt"}]
    container = {"name": "c", "image": "busybox", "command": ["sleep", "100"], "volumeMounts": mounts}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "claimed"}}]
    await cluster.run(containers=[container], volumes=volumes)
    await cluster.manager.step(3)
    assert '"hostPath": "/data"' in await machine.output("crictl inspect $(crictl ps -q)")


async def test_folder_of_a_volume_is_no_way_to_the_node(cluster, machine):
    names = {"empty": "/empty", "part": "/part", "claimed": "/claimed"}
    volumes = [
        {"name": "empty", "emptyDir": {}},
        {"name": "part", "hostPath": {"path": "/etc"}},
        {"name": "claimed", "emptyDir": {"medium": "Memory"}},
    ]
    script = "for path in /empty /part /claimed /dev/shm /tmp /ro; do chroot $path crictl ps; done; sleep 99"
    mounts = [{"name": name, "mountPath": path} for name, path in names.items()]
    volumes.append({"name": "node", "hostPath": {"path": "/"}})
    mounts.append({"name": "node", "mountPath": "/ro", "readOnly": True})
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}
    await cluster.run(containers=[{**container, "securityContext": {"privileged": True}}], volumes=volumes)
    await cluster.manager.step(5)
    log = await machine.output("crictl logs $(crictl ps -q)")
    assert log.count("No such file or directory") == 5
    assert "mounted read-only, as /ro, is not simulated" in log
    assert "CONTAINER" not in log


@pytest.mark.parametrize(
    ("spec", "context", "message"),
    [
        ({}, {}, "node-1"),
        ({"hostUsers": False}, {}, "Operation not permitted"),
        ({}, {"capabilities": {"drop": ["ALL"]}}, "Operation not permitted"),
        ({}, {"runAsUser": 1000}, "Operation not permitted"),
    ],
)
async def test_only_root_of_the_node_changes_to_its_root(cluster, machine, spec, context, message):
    container = {
        "name": "c", "image": "busybox", "command": ["sh", "-c", "chroot /host hostname; chroot /tmp ls; sleep 99"], "securityContext": context,
        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
    }  # fmt: skip
    volumes = [{"name": "host", "hostPath": {"path": "/"}}]
    await cluster.run(containers=[container], volumes=volumes, hostNetwork=not spec, hostPID=not spec, **spec)
    await cluster.manager.step(5)
    assert message in await machine.output("crictl logs $(crictl ps -q)")
