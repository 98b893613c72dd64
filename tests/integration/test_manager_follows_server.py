"""A manager that is started by hand, without flags for the release and the packs, beside servers that have them."""

import pytest

from tests.support.processes.process import ApiServerProcess, ManagerProcess, ProcessFailed, client

pytestmark = pytest.mark.slow

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
UNITED = "/apis/apps.kruise.io/v1alpha1/namespaces/default/uniteddeployments"
METADATA = {"labels": {"app": "web"}}
SELECTOR = {"matchLabels": {"app": "web"}}
TEMPLATE = {"metadata": METADATA, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
UNITED_DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": SELECTOR,
        "template": {
            "deploymentTemplate": {
                "metadata": METADATA,
                "spec": {"selector": SELECTOR, "template": TEMPLATE},
            }
        },
        "topology": {"subsets": [{"name": "a"}]},
    },
}


async def test_manager_runs_the_packs_of_its_server(tmp_path):
    with ApiServerProcess(tmp_path, "--packs=kruise") as server, ManagerProcess(server.kubeconfig) as manager:
        assert "uniteddeployment-controller" in manager.log[-1]
        async with client(server) as admin:
            assert (await admin.post(UNITED, UNITED_DEPLOYMENT)).status == 201
            while not (await admin.get(DEPLOYMENTS)).body["items"]:
                pass


def test_manager_has_the_minor_of_its_server_also_after_the_servers_restart(tmp_path):
    store = (f"--data-dir={tmp_path / 'data'}", f"--cert-dir={tmp_path / 'pki'}")
    with ApiServerProcess(tmp_path, "--kubernetes-version=1.36", *store) as server:
        port = server.url.rpartition(":")[2]
        with ManagerProcess(server.kubeconfig) as manager:
            manager.wait_logged("Kubernetes 1.36, as the API server")
            assert server.stop() == 0
            with ApiServerProcess(tmp_path, f"--secure-port={port}", *store):
                manager.wait_logged("Kubernetes 1.37, as the API server")
                manager.wait_logged("Controllers: ", times=2)
                assert manager.stop() == 0


def test_flags_that_the_server_cannot_have_end_the_manager(tmp_path):
    with ApiServerProcess(tmp_path, "--kubernetes-version=1.37") as server:
        problem = (
            'the API server has Kubernetes 1.37: --controllers: "node-route-controller" is not in the list'
        )
        with pytest.raises(ProcessFailed, match=problem):
            ManagerProcess(server.kubeconfig, "--controllers=*,-route").start()
