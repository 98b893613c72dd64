"""`mockube.explore` with an operator that reads its configuration only from its pod, which it looks for."""

import base64
import os
from pathlib import Path

import orjson
import pytest

import mockube
from mockube.exploration.plans import SECOND, TEXTS
from mockube.exploration.scenario import InvalidScenario
from tests.support.explored_operators import SCENARIO, Api, careful

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MANAGER = {"name": "manager", "namespace": "system"}
POD = {
    "serviceAccountName": "manager",
    "containers": [
        {
            "name": "manager",
            "image": "example.com/manager",
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/manager"}],
        }
    ],
    "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
}
OBJECTS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": MANAGER},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "system"},
        "data": {"mode": "fast"},
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "manager"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", **MANAGER}],
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": MANAGER,
        "spec": {
            "selector": {"matchLabels": {"app": "manager"}},
            "template": {"metadata": {"labels": {"app": "manager"}}, "spec": POD},
        },
    },
]
OPERATOR = {"podOf": "deployment/manager -n system"}


def in_pod(_):
    """Run the careful operator with what is in the pod, and note the name of the pod in it."""
    variables = {name: os.environ[name] for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")}
    host, port = variables.values()
    authority = base64.b64encode((ACCOUNT / "ca.crt").read_bytes()).decode()
    cluster = {"server": f"https://{host}:{port}", "certificate-authority-data": authority}
    user = {"token": (ACCOUNT / "token").read_text()}
    kubeconfig = Path("/tmp/kubeconfig")
    kubeconfig.write_bytes(orjson.dumps({"clusters": [{"cluster": cluster}], "users": [{"user": user}]}))
    assert Path("/etc/manager/mode").read_text() == "fast"
    path = f"/api/v1/namespaces/{(ACCOUNT / 'namespace').read_text()}/pods/{os.environ['POD_NAME']}"
    print(Api(kubeconfig).request("GET", path)["metadata"]["name"], flush=True)  # noqa: T201 - the log of an operator
    careful(kubeconfig)


@pytest.mark.slow
def test_each_of_two_operators_has_the_configuration_of_another_pod(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario = {
        **SCENARIO,
        "arrange": [{"apply": OBJECTS}],
        "operator": OPERATOR,
        "without": [name for name in TEXTS if name != SECOND],
    }
    found = mockube.explore(scenario, main=in_pod, plans=1)
    assert found.findings == [], found
    assert found.exploration.runs == 1
    assert found.exploration.not_judged == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        (OBJECTS[:-1], 'operator.podOf: deployments.apps "manager" not found'),
        (OBJECTS[:2] + OBJECTS[3:], "operator.podOf: deployment/manager -n system: pod manager-"),
    ],
    ids=["no workload", "no ConfigMap"],
)
def test_pod_that_does_not_run_is_a_mistake(objects, problem):
    scenario = {**SCENARIO, "arrange": [{"apply": objects}], "operator": OPERATOR, "timeout": 1}
    with pytest.raises(InvalidScenario) as error:
        mockube.explore(scenario, main=in_pod, plans=1)
    assert str(error.value).startswith(problem)
