"""`mockube images add` and `load` change what a running cluster knows of images, at once."""

import orjson
from kubernetes import client as official

from mockube.cli.main import main
from mockube.container_runtime.images.resolution import is_loaded

SHOP = "shop:\n  names: [registry.test/shop]\n  logs: [open for business]\n"


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
    assert is_loaded("ngnix:1")
    assert main(["images", "show", "registry.test/shop", server]) == 0
    assert "Logs:          open for business\n" in capsys.readouterr().out
