"""The methods of a cluster about objects, and what they say about mistakes."""

import asyncio
import inspect
import traceback
import urllib.request

import pytest

from mockube import AlreadyExists, KindNotServed, NotFound, WaitFailed
from mockube.cluster import AsyncCluster, Cluster
from mockube.objects.errors import InvalidType, InvalidValue
from mockube.objects.websocket import StreamFailed
from tools.awaited_methods import RESULT, awaited_methods

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dragons.magic.example}
spec:
  group: magic.example
  scope: Namespaced
  names: {kind: Dragon, plural: dragons}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
{apiVersion: magic.example/v1, kind: Dragon, metadata: {name: smaug}, spec: {heads: 1}}
"""


def deployment(name, **spec):
    labels = {"app": name}
    container = {"name": "web", "image": "nginx", "ports": [{"name": "http", "containerPort": 80}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def web(module_cluster):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    service["spec"] = {"selector": {"app": "web"}, "ports": [{"port": 8080, "targetPort": "http"}]}
    module_cluster.apply([deployment("web"), service])
    return module_cluster.wait("deployment/web", "Available")


def test_object_is_scaled_patched_and_restarted(cluster):
    (applied,) = cluster.apply(deployment("scaled"))
    assert cluster.scale("Deployment", "scaled", 2)["spec"]["replicas"] == 2
    assert cluster.scale("deploy/scaled", 3)["spec"]["replicas"] == 3
    cluster.wait(applied, "jsonpath={.status.readyReplicas}=3")
    assert cluster.patch("deployments", "scaled", {"spec": {"replicas": 1}})["spec"]["replicas"] == 1
    path = {"op": "replace", "path": "/spec/replicas", "value": 2}
    assert cluster.patch(applied, [path])["spec"]["replicas"] == 2
    assert cluster.patch("deploy", "scaled", "spec: {replicas: 4}", type="merge")["spec"]["replicas"] == 4
    restarts = [cluster.rollout_restart("deploy/scaled") for _ in range(2)]
    annotations = {str(tree["spec"]["template"]["metadata"]["annotations"]) for tree in restarts}
    assert len(annotations) == 2


def test_custom_resource_is_applied_with_its_definition_and_patched(cluster):
    _, dragon = cluster.apply(DEFINITION)
    assert cluster.patch(dragon, {"spec": {"heads": 3}})["spec"] == {"heads": 3}
    cluster.delete(DEFINITION)
    cluster.wait_gone("CustomResourceDefinition", "dragons.magic.example")


def test_objects_are_created_once_or_with_generated_names(cluster):
    generated = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
    first, second = cluster.create([generated, generated], namespace="kube-public")
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["namespace"] == "kube-public"
    cluster.create(config_map("created"))
    with pytest.raises(AlreadyExists, match='configmaps "created" already exists'):
        cluster.create(config_map("created"))


def test_manifests_name_objects_to_read_and_delete(cluster):
    both = [config_map("one", x="1"), config_map("two")]
    cluster.apply(both)
    assert [tree["metadata"]["name"] for tree in cluster.get(both)] == ["one", "two"]
    assert cluster.get(both[0])["data"] == {"x": "1"}
    read = cluster.get("cm/one")
    read["data"]["x"] = "2"
    cluster.apply(read)
    assert cluster.list("cm", fields={"metadata.name": "one"})[0]["data"] == {"x": "2"}
    cluster.delete(both)
    cluster.wait_gone(both)
    cluster.delete(both, ignore_not_found=True)
    with pytest.raises(NotFound):
        cluster.delete(both)


def test_command_log_and_port_of_workload_are_those_of_its_pod(cluster, web):
    assert cluster.exec("deployment/web", "ls /etc/hosts").stdout == "/etc/hosts\n"
    result = cluster.exec(web, ["sh", "-c", "cat; echo bad >&2; exit 3"], stdin="text")
    assert (result.stdout, result.stderr, result.exit_code) == ("text", "bad\n", 3)
    assert "ready for start up" in cluster.logs("deploy/web")
    assert len(cluster.logs("service/web", container="web", tail=1).splitlines()) == 1
    for target, port in (("deployment/web", "http"), ("service/web", 8080)):
        with cluster.port_forward(target, port) as forward:
            assert b"Welcome to nginx" in urllib.request.urlopen(forward.url).read()


def test_failed_connection_is_noted_in_error(cluster, web):
    with (
        pytest.raises(ConnectionResetError, match="without response") as raised,
        cluster.port_forward("deployment/web", 9999) as forward,
    ):
        urllib.request.urlopen(forward.url)
    assert any("9999" in note for note in raised.value.__notes__)


async def test_awaited_methods_are_the_same(module_cluster, web):
    cluster = module_cluster.awaited
    assert (await cluster.exec("deployment/web", "hostname")).exit_code == 0
    async with cluster.port_forward("deployment/web", 80) as forward:
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(forward.url).read())
    assert b"nginx" in page
    with pytest.raises(KindNotServed, match="did you mean"):
        await cluster.get("Deploymnet", "web")


def test_awaited_methods_are_generated():
    assert RESULT.read_text() == awaited_methods(), "generate them: make python-api"
    methods = inspect.getmembers(Cluster, inspect.isfunction)
    for name in (name for name, method in methods if method.__module__ == "mockube.objects.blocking"):
        assert getattr(AsyncCluster, name).__doc__


MISTAKES = [
    ("mistyped kind", lambda it: it.get("Deploymnet", "web"), KindNotServed, 'the server doesn\'t have a resource type "Deploymnet": did you mean "Deployment"?'),
    ("mistyped plural", lambda it: it.list("deplyments"), KindNotServed, 'the server doesn\'t have a resource type "deplyments": did you mean "deployments"?'),
    ("other group", lambda it: it.list("Deployment.app"), KindNotServed, 'the server doesn\'t have a resource type "Deployment.app": did you mean "Deployment.apps"?'),
    ("other version", lambda it: it.apply({**deployment("a"), "apiVersion": "v1"}), KindNotServed, 'no matches for kind "Deployment" in version "v1": did you mean apiVersion "apps/v1"?'),
    ("mistyped kind of object", lambda it: it.apply({**deployment("a"), "kind": "Deplyment"}), KindNotServed, 'no matches for kind "Deplyment" in version "apps/v1": did you mean "Deployment"?'),
    ("mistyped name", lambda it: it.get("Node", "node-11"), NotFound, 'nodes "node-11" not found: did you mean "node-1"?'),
    ("other name", lambda it: it.get("Namespace", "shop"), NotFound, 'namespaces "shop" not found: there are: default, kube-node-lease, kube-public, kube-system'),
    ("other namespace", lambda it: it.delete("Service", "kubernetes", namespace="kube-public"), NotFound, 'services "kubernetes" not found in namespace "kube-public": it is in namespace default'),
    ("mistyped namespace", lambda it: it.apply(config_map("a"), namespace="kube-pulbic"), NotFound, 'namespaces "kube-pulbic" not found: did you mean "kube-public"?'),
    ("two namespaces", lambda it: it.apply({**config_map("a"), "metadata": {"name": "a", "namespace": "x"}}, namespace="y"), InvalidValue, 'the namespace of the ConfigMap a is "x", and the method\'s is "y"'),
    ("mistyped condition", lambda it: it.wait("Deployment", "web", "Avalable"), InvalidValue, 'a Deployment has no condition "Avalable": did you mean "Available"?'),
    ("no objects", lambda it: it.wait(it.list("Job"), "Complete"), InvalidValue, "there are no objects to wait for: the list is empty"),
    ("no name", lambda it: it.wait("ConfigMap", "hello"), InvalidValue, '"ConfigMap" names no object, and \'hello\' is read as the condition: write the kind, the name and the condition, or "KIND/NAME" and the condition'),
    ("no condition", lambda it: it.wait("deployment/web", None), InvalidType, "the condition is missing"),
    ("error in condition", lambda it: it.wait("node/node-1", lambda _: 1 / 0), ZeroDivisionError, "division by zero"),
    ("exit in condition", lambda it: it.wait("node/node-1", lambda _: pytest.exit("enough")), pytest.exit.Exception, "enough"),
    ("timeout", lambda it: it.wait("node/node-1", "Ready", timeout="5"), InvalidType, "a timeout is a number of seconds, not str"),
    ("replicas", lambda it: it.scale("Deployment", "web", "3"), InvalidType, "replicas must be an int, not str"),
    ("scaled pod", lambda it: it.scale("Pod", "web", 3), InvalidValue, "a Pod cannot be scaled: it has no subresource scale"),
    ("restarted pod", lambda it: it.rollout_restart("pod/web"), InvalidValue, "a Pod cannot be restarted: only a DaemonSet, a Deployment or a StatefulSet can"),
    ("patch", lambda it: it.patch("Deployment", "web", 5), InvalidType, "a patch is a dict, a list of operations, or YAML, not int"),
    ("type of patch", lambda it: it.patch("Deployment", "web", {}, type="apply"), InvalidValue, "the type of a patch is 'strategic', 'merge', 'json' or None, not 'apply'"),
    ("time", lambda it: it.advance("60"), InvalidType, "the time to advance is a number of seconds, not str"),
    ("mistyped short name", lambda it: it.list("deplyo"), KindNotServed, 'did you mean "deploy"?'),
    ("mistyped subresource", lambda it: it.patch("deployment/web", {}, subresource="stauts"), InvalidValue, 'a Deployment has no subresource "stauts": did you mean "status"?'),
    ("no subresource", lambda it: it.patch("configmap/kube-root-ca.crt", {}, subresource="x"), InvalidValue, 'a ConfigMap has no subresource "x"'),
    ("name that is a path", lambda it: it.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a/b"}}), InvalidValue, '"a/b" is not a name: it must not contain "/", or be "." or ".."'),
    ("name that is a folder", lambda it: it.logs("pod/.."), InvalidValue, '".." is not a name: it must not contain "/", or be "." or ".."'),
    ("long time", lambda it: it.advance(1e12), InvalidValue, "the time to advance is at most 3.16224e+07 seconds, a year"),
    ("label without value", lambda it: it.list("Pod", labels={"app": None}), InvalidType, "the value of the label app is a str, not NoneType"),
    ("label with comma", lambda it: it.list("Pod", labels={"app": "a,b=c"}), InvalidValue, 'the value of the label app must not contain "," or "="'),
    ("labels", lambda it: it.list("Pod", labels=5), InvalidType, 'labels are a str such as "app=web", or a dict, not int'),
    ("object without a name", lambda it: it.apply({"apiVersion": "v1", "kind": "ConfigMap"}), InvalidValue, "the ConfigMap has no metadata.name: an object without one is created"),
    ("container", lambda it: it.logs("deployment/web", container="wbe"), InvalidValue, 'has no container wbe: did you mean "web"?'),
    ("program", lambda it: it.exec("deployment/web", "nonsense"), StreamFailed, 'exec: "nonsense": executable file not found in $PATH'),
    ("command", lambda it: it.exec("deployment/web", 5), InvalidType, 'a command is a str, or a list of str such as ["ls", "/etc"]'),
    ("quote", lambda it: it.exec("deployment/web", "echo 'a"), InvalidValue, "the command cannot be split: No closing quotation"),
    ("endless command", lambda it: it.exec("deployment/web", "sleep 60", timeout=0.1), WaitFailed, "the command did not end within 0.1 s"),
    ("no pods", lambda it: it.logs("configmap/kube-root-ca.crt"), InvalidValue, "a ConfigMap has no pods: name a pod, a workload or a Service"),
    ("port", lambda it: it.port_forward("service/web", 80).__enter__(), InvalidValue, "Service web has no port 80: it has 8080"),
    ("named port", lambda it: it.port_forward("deployment/web", "htpp").__enter__(), InvalidValue, 'has no port with the name htpp: did you mean "http"?'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [pytest.param(mistake, error, message, id=name) for name, mistake, error, message in MISTAKES],
)
def test_mistake_is_one_sentence_without_frames_of_mockube(cluster, web, mistake, error, message):
    with pytest.raises(error) as raised:
        mistake(cluster)
    assert message in str(raised.value)
    frames = traceback.walk_tb(raised.value.__traceback__)
    shown = [
        frame.f_code.co_qualname
        for frame, _ in frames
        if "mockube" in frame.f_globals["__name__"] and "__tracebackhide__" not in frame.f_locals
    ]
    assert shown == []
