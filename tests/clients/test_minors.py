"""kubectl with a server of the same minor version, and the Python client with the oldest minor."""

import gc

import kubernetes
import orjson
import pytest

from mockube import Cluster
from mockube.apimachinery.schema import minors
from tests.support.processes.kubectl_binaries import Kubectl, binaries

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      hostnameOverride: a
      containers: [{name: web, image: nginx}]
"""


SOME = ("1.29", "1.31", "1.33")


def minor_of(binary):
    return str(binary).rpartition("kubectl.")[2]


@pytest.mark.parametrize(
    "binary",
    [found for found in binaries() if minor_of(found.values[0]) in SOME],
)
def test_kubectl_of_same_minor_works(binary, tmp_path):
    minor = minor_of(binary)
    with Cluster(version=minor, nodes=1, packs="") as cluster:
        kubectl = Kubectl(binary, cluster.kubeconfig, tmp_path)
        versions = orjson.loads(kubectl("version", "-o", "json"))
        assert versions["serverVersion"]["minor"] == minor.partition(".")[2]
        refused = kubectl.attempt("create", "-f", "-", stdin=WEB)
        assert 'unknown field "spec.template.spec.hostnameOverride"' in refused.stderr
        kubectl("apply", "-f", "-", "--validate=warn", stdin=WEB)
        kubectl("rollout", "status", "deployment/web", "--timeout=20s")
        assert "nginx" in kubectl("get", "deployments", "-o", "wide")
        served = kubectl("api-resources", "--no-headers", "-o", "name").split()
        assert ("servicecidrs.networking.k8s.io" in served) == (not minors.is_before(minor, "1.33"))
        assert "FIELD" in kubectl("explain", "deployment.spec.replicas")
        assert "does not exist" in kubectl.attempt("explain", "pod.spec.hostnameOverride").stderr


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_official_python_client_works_with_oldest_minor():
    """The client is newer than the server: APIs missing in 1.29 return 404, and the rest works."""
    with (
        Cluster(version="1.29", nodes=1, packs="") as cluster,
        kubernetes.config.new_client_from_config(str(cluster.kubeconfig)) as connection,
    ):
        assert kubernetes.client.VersionApi(connection).get_code().minor == "29"
        apps = kubernetes.client.AppsV1Api(connection)
        template = {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "a", "image": "a"}]},
        }
        spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
        created = apps.create_namespaced_deployment("default", {"metadata": {"name": "a"}, "spec": spec})
        assert created.spec.replicas == 1
        spec["selector"] = {"matchLabels": {"app": "b"}}
        with pytest.raises(kubernetes.client.ApiException) as caught:
            apps.replace_namespaced_deployment("a", "default", {"metadata": {"name": "a"}, "spec": spec})
        causes = orjson.loads(caught.value.body)["details"]["causes"]
        assert causes[0]["message"].startswith('Invalid value: map[string]string{"app":"a"}')
        with pytest.raises(kubernetes.client.ApiException) as caught:
            kubernetes.client.NetworkingV1Api(connection).list_service_cidr()
        assert caught.value.status == 404
        dynamic = kubernetes.dynamic.DynamicClient(connection)
        levels = dynamic.resources.get(
            api_version="flowcontrol.apiserver.k8s.io/v1beta3", kind="PriorityLevelConfiguration"
        )
        assert "exempt" in [level.metadata.name for level in levels.get().items]
    gc.collect()
