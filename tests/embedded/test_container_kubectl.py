"""kubectl in a container acts on the API as the pod's ServiceAccount, with kubectl's messages and exit codes."""

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SCRIPT = """
set -e
kubectl create secret generic made --from-literal=password=s3cret
kubectl get secret made -o jsonpath='{.data.password}' | base64 -d > /tmp/password
test "$(cat /tmp/password)" = s3cret
kubectl label secret made tier=back
kubectl delete secret made --ignore-not-found
"""
RULES = [{"apiGroups": ["", "apps", "batch"], "resources": ["*"], "verbs": ["*"]}]


def metadata(name, **fields):
    return {"name": name, "namespace": "default", **fields}


def account(name, rules):
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(name),
        "rules": rules,
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name)}, role, binding]


@pytest.fixture(scope="module")
def cluster(module_cluster):
    for tree in account("deployer", RULES):
        module_cluster.apply(orjson.dumps(tree).decode())
    container = {"name": "c", "image": "bitnami/kubectl", "command": ["sleep", "infinity"]}
    shell = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata("shell"),
        "spec": {"serviceAccountName": "deployer", "containers": [container]},
    }
    module_cluster.apply(orjson.dumps(shell).decode())
    module_cluster.wait("Pod", "shell", "Ready")
    return module_cluster


@pytest.fixture(scope="module")
def kubectl(cluster):
    api = official.CoreV1Api(cluster.kubernetes())

    def run(arguments):
        """Run kubectl in the pod; return its exit code and its output."""
        session = stream(
            api.connect_get_namespaced_pod_exec, "shell", "default", command=["sh", "-c", f"kubectl {arguments}"],
            stdout=True, stderr=True, _preload_content=False,
        )  # fmt: skip
        session.run_forever(timeout=60)
        code = session.returncode
        return code, session.read_all()

    return run


def run_job(cluster, name, script, account="default", **fields):
    """Run a Job to its end; return the log of its pod, and whether it has succeeded."""
    container = {"name": "c", "image": "alpine/k8s:1.36.0", "command": ["sh", "-c", script]} | fields
    template = {"spec": {"restartPolicy": "Never", "serviceAccountName": account, "containers": [container]}}
    spec = {"backoffLimit": 0, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(name), "spec": spec}
    cluster.apply(orjson.dumps(job).decode())
    ended = cluster.wait("Job", name, has_ended)
    (pod,) = cluster.list("Pod", labels=f"job-name={name}")
    log = official.CoreV1Api(cluster.kubernetes()).read_namespaced_pod_log(pod["metadata"]["name"], "default")
    return log, "Complete" in condition_types(ended)


def condition_types(tree):
    return {condition["type"] for condition in tree.get("status", {}).get("conditions") or ()}


def has_ended(job):
    return condition_types(job) & {"Complete", "Failed"}


def test_job_writes_objects_as_its_service_account(cluster):
    log, succeeded = run_job(cluster, "hook", SCRIPT, "deployer")
    assert log == 'secret/made created\nsecret/made labeled\nsecret "made" deleted from default namespace\n'
    assert succeeded


def test_job_without_rights_fails(cluster):
    log, succeeded = run_job(cluster, "forbidden", "kubectl get secrets")
    assert log.startswith(
        'Error from server (Forbidden): secrets is forbidden: User "system:serviceaccount:default:default" cannot list'
    )
    assert not succeeded


def test_manifests_are_applied(kubectl):
    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: %s}}"
    for value, verb in (("x", "created"), ("x", "unchanged"), ("two", "configured")):
        assert kubectl(f"apply -f - <<X\n{manifest % value}\nX\n") == (0, f"configmap/c {verb}\n")
    assert kubectl("get cm c -o jsonpath={.data.a}") == (0, "two")
    assert kubectl("get configmap/c -o name") == (0, "configmap/c\n")
    assert kubectl('patch cm c --type=merge -p \'{"data":{"a":"z"}}\'') == (0, "configmap/c patched\n")
    assert kubectl('patch cm c --type=merge -p \'{"data":{"a":"z"}}\'') == (
        0,
        "configmap/c patched (no change)\n",
    )
    assert kubectl("delete cm c") == (0, 'configmap "c" deleted from default namespace\n')


def test_missing_objects_have_errors_of_kubectl(kubectl):
    assert kubectl("get cm none") == (1, 'Error from server (NotFound): configmaps "none" not found\n')
    assert kubectl("get cm none --ignore-not-found") == (0, "")
    assert kubectl("get nosuch") == (1, 'error: the server doesn\'t have a resource type "nosuch"\n')
    assert kubectl("get cronjobs") == (0, "No resources found in default namespace.\n")
    assert kubectl("create -f /none") == (1, 'error: the path "/none" does not exist\n')
    code, output = kubectl("create namespace kube-system")
    assert code == 1
    assert "namespaces is forbidden" in output


def test_existing_object_is_not_created_again(kubectl):
    assert kubectl("create configmap twice --from-literal=a=b") == (0, "configmap/twice created\n")
    code, output = kubectl("create configmap twice --from-literal=a=b")
    assert (code, output) == (1, 'error: failed to create configmap: configmaps "twice" already exists\n')
    code, output = kubectl(
        "create configmap twice --from-literal=a=c --dry-run=client -o yaml | kubectl apply -f -"
    )
    assert (code, output) == (0, "configmap/twice configured\n")


def test_labels_and_annotations_are_changed(kubectl):
    kubectl("create configmap marked")
    assert kubectl("label cm marked a=b") == (0, "configmap/marked labeled\n")
    assert kubectl("label cm marked a=b") == (0, "configmap/marked not labeled\n")
    message = "error: 'a' already has a value (b), and --overwrite is false\n"
    assert kubectl("label cm marked a=c") == (1, message)
    assert kubectl("label cm/marked a=c --overwrite") == (0, "configmap/marked labeled\n")
    assert kubectl("label cm marked a-") == (0, "configmap/marked unlabeled\n")
    assert kubectl("annotate cm marked x/y='1 2'") == (0, "configmap/marked annotated\n")
    assert kubectl("get cm marked -o jsonpath='{.metadata.annotations.x/y}'") == (0, "1 2")


def test_waiting_ends_with_condition_or_timeout(kubectl):
    assert kubectl("wait --for=condition=Ready pod/shell") == (0, "pod/shell condition met\n")
    assert kubectl("wait --for=jsonpath='{.status.phase}'=Running pod/shell") == (
        0,
        "pod/shell condition met\n",
    )
    code, output = kubectl("wait --for=condition=Nothing pod/shell --timeout=1s")
    assert (code, output) == (1, "error: timed out waiting for the condition on pods/shell\n")
    code, output = kubectl("wait --for=condition=Ready pod -l app=none")
    assert (code, output) == (1, "error: no matching resources found\n")


def test_rollout_is_waited_for(cluster, kubectl):
    labels = {"app": "rolled"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("rolled"), "spec": spec}
    cluster.apply(orjson.dumps(tree).decode())
    code, output = kubectl("rollout status deployment/rolled --timeout=30s")
    assert code == 0
    assert output.endswith('deployment "rolled" successfully rolled out\n')
    assert kubectl("rollout restart deploy rolled") == (0, "deployment.apps/rolled restarted\n")
    assert kubectl("scale deploy rolled --replicas=0") == (0, "deployment.apps/rolled scaled\n")
    assert kubectl("delete deploy rolled --wait=false") == (
        0,
        'deployment.apps "rolled" deleted from default namespace\n',
    )


def test_table_has_columns_of_the_server(kubectl):
    code, output = kubectl("get pods shell")
    assert code == 0
    header, row = output.splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["shell", "1/1", "Running", "0"]
    assert len(kubectl("get pods shell --no-headers")[1].splitlines()) == 1


def test_other_commands_are_refused_by_name(kubectl):
    assert kubectl("exec shell -- true") == (1, "mockube: kubectl exec does not run: it is not simulated\n")
    assert kubectl("get pods --watch") == (1, "mockube: kubectl --watch does not run: it is not simulated\n")
    assert kubectl("version --client")[1].startswith("Client Version: v1.37")


def test_certgen_makes_secret_and_patches_webhooks(cluster):
    service = {"name": "hooks", "namespace": "default"}
    webhook = {
        "name": "h.example.com",
        "clientConfig": {"service": service},
        "failurePolicy": "Ignore",
        "objectSelector": {"matchLabels": {"never": "matches"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [webhook],
    }
    rule = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations"],
        "verbs": ["get", "update"],
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "certgen"},
        "rules": [rule],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "certgen"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "certgen"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "default"}],
    }
    for tree in (configuration, role, binding):
        cluster.apply(orjson.dumps(tree).decode())
    image = {"image": "registry.k8s.io/ingress-nginx/kube-webhook-certgen:v1.6.3", "command": None}
    names = ["--namespace=default", "--secret-name=hooks"]
    create = ["create", "--host=hooks,hooks.default.svc", *names]
    assert run_job(cluster, "certgen-create", "", "deployer", **image, args=create)[1]
    patch = ["patch", "--webhook-name=hooks", *names, "--patch-mutating=false", "--patch-failure-policy=Fail"]
    assert run_job(cluster, "certgen-patch", "", "deployer", **image, args=patch)[1]
    secret = cluster.get("Secret", "hooks")
    assert secret["data"].keys() == {"ca", "cert", "key"}
    (patched,) = cluster.get("ValidatingWebhookConfiguration", "hooks", namespace="")["webhooks"]
    assert (patched["clientConfig"]["caBundle"], patched["failurePolicy"]) == (secret["data"]["ca"], "Fail")
