"""`mockube images add` and `load` change what a running cluster knows of images, at once."""

import sys

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube import Cluster
from mockube.apimachinery.pods import assumption_of
from mockube.cli.main import main

SHOP = """
shop:
  names: [registry.test/shop]
  logs: [open for business]
  scripts: {shopctl: 'echo "$1 is $(basename $0)"'}
"""

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def executed(cluster, *command):
    """Return what a command in the container prints."""
    api = official.CoreV1Api(cluster.kubernetes())
    connect = api.connect_get_namespaced_pod_exec
    return stream(connect, "shop", "default", command=[*command], stdout=True, stderr=True, tty=False)


def test_added_images_run_and_loaded_ones_exist(module_cluster, tmp_path, capsys):
    path = tmp_path / "images.yaml"
    path.write_text(SHOP)
    server = f"--kubeconfig={module_cluster.kubeconfig}"
    assert main(["images", "load", "ngnix:1", server]) == 0
    assert main(["images", "add", str(path), server]) == 0
    assert capsys.readouterr().out == "docker.io/library/ngnix:1 loaded\n1 image added: shop\n"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shop"},
        "spec": {"containers": [{"name": "c", "image": "registry.test/shop:1"}]},
    }
    module_cluster.apply(orjson.dumps(pod).decode())
    module_cluster.wait("Pod", "shop", "Ready")
    log = official.CoreV1Api(module_cluster.kubernetes()).read_namespaced_pod_log("shop", "default")
    assert log == "open for business\n"
    assert executed(module_cluster, "shopctl", "this") == "this is shopctl\n"
    assert executed(module_cluster, "bash", "-c", "shopctl this | tr a-z A-Z") == "THIS IS SHOPCTL\n"
    assert main(["images", "resolve", "ngnix:1", server]) == 0
    assert capsys.readouterr().out.startswith("ngnix:1: docker.io/library/ngnix:1, sha256:")
    assert main(["images", "show", "registry.test/shop", server]) == 0
    assert "Logs:          open for business\n" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="forks are supported on Linux only")
def test_images_of_a_cluster_are_not_those_of_another_one_and_of_its_fork():
    def ended(cluster, code):
        """Describe the image in a cluster, run it, and return the exit code of its container."""
        text = f"shop: {{names: [registry.test/shop], exitCode: {code}}}"
        metadata = {"name": "mockube-images", "namespace": "kube-system"}
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"images.yaml": text},
        }
        cluster.apply(orjson.dumps(config_map).decode())
        cluster.advance(1)
        spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.test/shop"}]}
        metadata = {"name": f"shop-{code}", "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        cluster.apply(orjson.dumps(pod).decode())
        cluster.wait("Pod", metadata["name"], "jsonpath={.status.phase}=Failed")
        [status] = cluster.get("Pod", metadata["name"])["status"]["containerStatuses"]
        return status["state"]["terminated"]["exitCode"]

    with Cluster(nodes=1) as parent, Cluster(nodes=1) as other:
        assert ended(parent, 3) == 3
        assert ended(other, 4) == 4
        with parent.fork() as fork:
            assert ended(fork, 5) == 5
            assert [ended(parent, 6), ended(other, 7), ended(fork, 8)] == [6, 7, 8]


def test_containers_wait_for_programs_until_they_are_known():
    namespaces = {"waiting": {}, "failing": {"mockube.dev/unknown-programs": "fail"}}
    script = "wget -qO- http://nope; my-task"
    commands = {"unknown": (), "live": ("sh", "-c", script)}
    image = "example.org/shop:1"

    def state(cluster, name, namespace="waiting"):
        status = cluster.get("Pod", name, namespace=namespace)["status"]
        return (status.get("containerStatuses") or [{"state": {}}])[0]

    with Cluster(nodes=1, unknown_programs="wait") as cluster:
        for namespace, annotations in namespaces.items():
            metadata = {"name": namespace, "annotations": annotations}
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            for name, command in commands.items():
                container = {"name": "c", "image": image, "command": [*command]}
                metadata = {"name": name, "namespace": namespace}
                spec = {"containers": [container], "restartPolicy": "Never"}
                cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        cluster.wait("Pod", "live", "jsonpath={.status.phase}=Failed", namespace="failing")
        message = f"the image {image} is not simulated: the container waits until it is"
        waiting = {"reason": "NotSimulated", "message": message}
        cluster.wait(
            "Pod",
            "unknown",
            lambda _: state(cluster, "unknown")["state"] == {"waiting": waiting},
            namespace="waiting",
        )
        cluster.wait("Pod", "live", lambda pod: "my-task" in assumption_of(pod), namespace="waiting")
        cluster.wait("Pod", "live", lambda _: not state(cluster, "live")["ready"], namespace="waiting")
        assert "running" in state(cluster, "live")["state"]
        table = "shop: {names: [example.org/shop], ports: {8080: {}}}"
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "mockube-images", "namespace": "kube-system"},
                "data": {"images.yaml": table},
            }
        )
        cluster.wait("Pod", "unknown", "Ready", namespace="waiting")
