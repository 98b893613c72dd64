"""Common kubectl commands, with each available version of kubectl."""

import orjson
import pytest

pytestmark = pytest.mark.timeout(240)

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.25", ports: [{containerPort: 80}]}
"""


def test_apply_changes_only_fields_of_manifest(kubectl):
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    kubectl("scale", "deployment/web", "--replicas=5")
    changed = DEPLOYMENT.replace("nginx:1.25", "nginx:1.26")
    assert kubectl.attempt("diff", "-f", "-", stdin=changed).returncode == 1
    assert kubectl("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured\n"
    image = "jsonpath={.spec.template.spec.containers[0].image} {.spec.replicas}"
    assert kubectl("get", "deployment", "web", "-o", image) == "nginx:1.26 2"


def test_server_side_apply_reports_conflicts(kubectl):
    kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    kubectl("scale", "deployment/web", "--replicas=5")
    other = kubectl.attempt("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=DEPLOYMENT)
    assert other.returncode == 1
    assert ".spec.replicas" in other.stderr
    kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-", stdin=DEPLOYMENT
    )
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "2"


def test_get_supports_every_output_format(kubectl):
    kubectl("create", "configmap", "a", "--from-literal=k=v")
    assert kubectl("get", "configmaps", "a", "--no-headers").split()[:2] == ["a", "1"]
    assert kubectl("get", "cm", "-o", "name") == "configmap/a\n"
    assert orjson.loads(kubectl("get", "cm", "a", "-o", "json"))["data"] == {"k": "v"}
    assert "data:\n  k: v\n" in kubectl("get", "cm", "a", "-o", "yaml")
    assert kubectl("get", "cm", "a", "-o", "custom-columns=K:.data.k") == "K\nv\n"
    assert kubectl("get", "cm", "-l", "none=such", "-o", "name") == ""
    assert "k:\n----\nv\n" in kubectl("describe", "cm", "a")


def test_objects_can_be_changed_by_every_kubectl_command(kubectl):
    kubectl("create", "configmap", "a", "--from-literal=k=edit-me")
    kubectl("label", "configmap", "a", "colour=red")
    kubectl("annotate", "configmap", "a", "note=x")
    kubectl("patch", "configmap", "a", "--type=json", "-p", '[{"op":"add","path":"/data/j","value":"1"}]')
    kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"m":"2"}}')
    kubectl("patch", "configmap", "a", "-p", '{"data":{"s":"3"}}')
    kubectl("edit", "configmap", "a")
    found = orjson.loads(kubectl("get", "configmap", "a", "-o", "json"))
    assert found["data"] == {"k": "edited", "j": "1", "m": "2", "s": "3"}
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]) == (
        {"colour": "red"},
        {"note": "x"},
    )
    kubectl("replace", "-f", "-", stdin=orjson.dumps(found | {"data": {"r": "4"}}).decode())
    assert kubectl("get", "configmap", "a", "-o", "jsonpath={.data}") == '{"r":"4"}'


def test_delete_waits_for_deletion(kubectl):
    kubectl("create", "configmap", "a")
    assert "deleted" in kubectl("delete", "configmap", "a")
    gone = kubectl.attempt("get", "configmap", "a")
    assert gone.stderr == 'Error from server (NotFound): configmaps "a" not found\n'


def test_wait_returns_when_condition_is_true(kubectl):
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    status = '{"status":{"conditions":[{"type":"Available","status":"True"}]}}'
    kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status)
    assert "condition met" in kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")


def test_create_with_unknown_fields_is_refused(kubectl):
    wrong = kubectl.attempt("create", "-f", "-", stdin=DEPLOYMENT.replace("replicas", "replicsa"))
    assert wrong.returncode == 1
    assert 'unknown field "spec.replicsa"' in wrong.stderr
    assert kubectl("get", "deployments") == ""


def test_explain_describes_kinds(kubectl):
    assert "fieldRef" in kubectl("explain", "pod.spec.containers.env.valueFrom")
    assert "maxUnavailable" in kubectl("explain", "deployment.spec", "--recursive")
    resources = kubectl("api-resources", "--no-headers", "-o", "name").split()
    assert {"pods", "deployments.apps", "leases.coordination.k8s.io"} <= set(resources)
    assert "apps/v1" in kubectl("api-versions").split()
