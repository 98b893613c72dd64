"""`mockube images add` and `load` change what a running cluster knows of images, at once."""

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube.cli.main import main
from mockube.container_runtime.images.resolution import is_loaded

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
    assert is_loaded("ngnix:1")
    assert main(["images", "show", "registry.test/shop", server]) == 0
    assert "Logs:          open for business\n" in capsys.readouterr().out
