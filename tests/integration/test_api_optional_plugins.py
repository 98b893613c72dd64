"""Admission plugins that are off by default, request by request: responses of kube-apiserver 1.36.3.

The requests are in `optional_plugins.jsonl`, with the answers: code, reason, message and causes of a refusal, or what the
object `shows`. `${PATH}` stands for the uid of the object at that path.
"""

import re
from pathlib import Path

import orjson
import pytest

from mockube.apiserver.admission.chain import OFF_BY_DEFAULT
from tests.support.server.apiserver import running_with_roles

REQUESTS = list(
    map(orjson.loads, (Path(__file__).parent / "optional_plugins.jsonl").read_bytes().splitlines())
)
USERS = {
    None: {},
    "alice": {"Impersonate_User": "alice", "Impersonate_Group": "dev"},
    "node1": {"Impersonate_User": "system:node:n1", "Impersonate_Group": "system:nodes"},
}
CONFIGURATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Namespace, qps: 1, burst: 2, cacheSize: 10}
- name: PodNodeSelector
  path: selectors.yaml
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
    kind: Configuration
    default:
    - {key: dflt, operator: Exists}
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: latest}
    exemptions: {namespaces: [exempt]}
"""
SELECTORS = "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: zone=a, adm2: 'zone=b,disk=ssd'}"


@pytest.fixture
async def client(tmp_path):
    (tmp_path / "selectors.yaml").write_text(SELECTORS)
    (tmp_path / "admission.yaml").write_text(CONFIGURATION)
    enabled = OFF_BY_DEFAULT - {"AlwaysDeny", "ImagePolicyWebhook"}
    async with running_with_roles(
        "--kubernetes-version=1.36",
        f"--enable-admission-plugins={','.join(enabled)}",
        f"--admission-control-config-file={tmp_path / 'admission.yaml'}",
    ) as client:
        yield client


def value_at(tree, path):
    for step in path.split("."):
        tree = tree[int(step)] if isinstance(tree, list) else (tree or {}).get(step)
    return tree


def result_of(answer, shows):
    body = answer.body
    if answer.status < 400:
        return [answer.status, *(value_at(body, path) for path in shows)]
    details = body.get("details") or {}
    error_fields = (
        body.get("reason"),
        body.get("message"),
        details.get("causes"),
        details.get("retryAfterSeconds"),
    )
    return [answer.status, *error_fields]


async def with_uids(client, request):
    text = orjson.dumps(request).decode()
    for path in set(re.findall(r"\$\{(.*?)\}", text)):
        uid = (await client.get(path)).body["metadata"]["uid"]
        text = text.replace(f"${{{path}}}", uid)
    return orjson.loads(text)


async def test_optional_plugin_responses_match_recording(client):
    wrong = []
    for recorded in REQUESTS:
        request = await with_uids(client, recorded)
        await client.server.registry.watch_cache.fresh()
        content = f"application/{request.get('patch', 'json')}"
        user = USERS[request.get("user")]
        answer = await client.send(
            request["method"], request["path"], request.get("body"), Content_Type=content, **user
        )
        if "answer" in request and result_of(answer, request.get("shows", ())) != request["answer"]:
            wrong.append((request["id"], result_of(answer, request.get("shows", ())), request["answer"]))
    assert not wrong


async def test_refusal_of_token_names_audience_since_1_37():
    path = "/api/v1/namespaces/default"
    async with running_with_roles("--enable-admission-plugins=NodeRestriction") as client:
        await client.post(f"{path}/serviceaccounts", {"metadata": {"name": "default"}})
        spec = {"containers": [{"name": "c", "image": "x"}], "nodeName": "n1"}
        pod = await client.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": spec})
        await client.server.registry.watch_cache.fresh()
        reference = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod.body["metadata"]["uid"]}
        answer = await client.post(
            f"{path}/serviceaccounts/default/token",
            {"spec": {"audiences": ["a"], "boundObjectRef": reference}},
            **USERS["node1"],
        )
    assert answer.body["message"] == (
        'serviceaccounts "default" is forbidden: system:node:n1 is not authorized to request tokens for audience "a"'
    )


async def test_always_deny_plugin_refuses_everything():
    async with running_with_roles("--enable-admission-plugins=AlwaysDeny") as client:
        answer = await client.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
        assert answer.status == 403
        assert answer.body["message"].endswith("is forbidden: admission control is denying all modifications")


RESIZE = "/api/v1/namespaces/default/pods/p/resize"


@pytest.mark.parametrize(
    ("labels", "cpu", "problem"),
    [
        ({}, "1500m", None),
        ({}, "3", "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000"),
        (
            {"kubernetes.io/os": "windows"},
            "1500m",
            'pod resize is only supported on linux nodes, node "n" is "windows"',
        ),
        (None, "1500m", 'node "n" not found'),
    ],
)
async def test_resize_must_fit_node(labels, cpu, problem):
    async with running_with_roles() as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        if labels is not None:
            await client.post("/api/v1/nodes", {"metadata": {"name": "n", "labels": labels}})
            status = {"status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}}
            await client.patch("/api/v1/nodes/n/status", status)
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [container]}}
        answer = await client.post("/api/v1/namespaces/default/pods", pod)
        assert answer.status == 201, answer.body
        container["resources"]["requests"]["cpu"] = cpu
        patch = {"spec": {"containers": [container]}}
        answer = await client.patch(RESIZE, patch, kind="strategic-merge-patch+json")
        if problem is None:
            assert answer.status == 200, answer.body
        else:
            assert (answer.status, answer.body["message"]) == (403, f'pods "p" is forbidden: {problem}')


def cpu_resources(amount):
    return {"requests": {"cpu": amount}, "limits": {"cpu": amount}}


POD_FEATURE, INIT_FEATURE = (
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
)


@pytest.mark.parametrize(
    ("declared", "change", "lacking"),
    [
        ([], {"resources": cpu_resources("2")}, POD_FEATURE),
        ([INIT_FEATURE, "Other"], {"resources": cpu_resources("2")}, POD_FEATURE),
        ([POD_FEATURE], {"resources": cpu_resources("2")}, ""),
        ([], {"initContainers": [{"name": "i", "resources": cpu_resources("2")}]}, INIT_FEATURE),
        ([INIT_FEATURE], {"initContainers": [{"name": "i", "resources": cpu_resources("2")}]}, ""),
        ([], {"initContainers": [{"name": "s", "resources": cpu_resources("500m")}]}, ""),
        ([], {"containers": [{"name": "c", "resources": cpu_resources("500m")}]}, ""),
    ],
)
async def test_resize_needs_declared_node_features(declared, change, lacking):
    one = cpu_resources("1")
    containers = [{"name": "c", "image": "x", "resources": one}]
    init = [
        {"name": "i", "image": "x", "resources": one},
        {"name": "s", "image": "x", "resources": one, "restartPolicy": "Always"},
    ]
    spec = {
        "nodeName": "n",
        "resources": cpu_resources("3"),
        "containers": containers,
        "initContainers": init,
    }
    async with running_with_roles() as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        status = {"allocatable": {"cpu": "9", "memory": "9Gi"}, "declaredFeatures": declared}
        answer = await client.patch("/api/v1/nodes/n/status", {"status": status})
        assert answer.status == 200, answer.body
        answer = await client.post(
            "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec}
        )
        assert answer.status == 201, answer.body
        answer = await client.patch(RESIZE, {"spec": change}, kind="strategic-merge-patch+json")
    if lacking:
        problem = f'pod update requires features {lacking} which are not available on node "n"'
        assert (answer.status, answer.body["message"]) == (403, f'pods "p" is forbidden: {problem}')
    else:
        assert answer.status == 200, answer.body
