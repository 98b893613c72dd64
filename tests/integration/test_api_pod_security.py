"""PodSecurity admission of pods, workloads and namespaces, over HTTP."""

from itertools import count

import orjson
import pytest

from mockube.component_base.clock import RealClock
from tests.support.server import apiserver

NAMESPACE = "/api/v1/namespaces/guarded"
PODS = f"{NAMESPACE}/pods"
DETAIL = 'PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'


def labels(**modes):
    return {f"pod-security.kubernetes.io/{mode.replace('_', '-')}": value for mode, value in modes.items()}


async def make_namespace(client, **modes):
    metadata = {"name": "guarded", "labels": labels(**modes)}
    answer = await client.post("/api/v1/namespaces", {"metadata": metadata})
    if answer.status == 201:
        await client.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    return answer


async def relabel(client, **modes):
    return await client.patch(NAMESPACE, {"metadata": {"labels": labels(**modes)}})


def pod(name="p", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]} | spec}


def warnings(answer):
    return [orjson.loads(line.split(" ", 2)[2]) for line in answer.headers.getall("Warning", [])]


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def test_pod_violating_enforced_level_is_refused(client):
    await make_namespace(client, enforce="baseline")
    answer = await client.post(PODS, pod(hostNetwork=True))
    assert answer.status == 403
    assert answer.body["message"] == f'pods "p" is forbidden: violates {DETAIL}'
    assert (await client.get(f"{PODS}/p")).status == 404


async def test_violation_of_nameless_pod_uses_generate_name(client):
    await make_namespace(client, enforce="baseline")
    nameless = pod(hostNetwork=True) | {"metadata": {"generateName": "p-"}}
    answer = await client.post(PODS, nameless)
    name = answer.body["details"]["name"]
    assert name.startswith("p-")
    assert answer.body["message"] == f'pods "{name}" is forbidden: violates {DETAIL}'


async def test_namespace_without_labels_allows_everything(client):
    await make_namespace(client)
    answer = await client.post(PODS, pod(hostNetwork=True, hostPID=True))
    assert (answer.status, warnings(answer)) == (201, [])


async def test_workload_template_violation_is_a_warning(client):
    await make_namespace(client, enforce="baseline")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostNetwork=True)["spec"]}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    answer = await client.post("/apis/apps/v1/namespaces/guarded/deployments", deployment)
    assert answer.status == 201
    assert warnings(answer) == [f"would violate {DETAIL}"]


async def test_update_is_checked_for_new_containers_and_images_only(client):
    await make_namespace(client)
    await client.post(PODS, pod(hostNetwork=True))
    await relabel(client, enforce="baseline")
    labelled = await client.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.status == 200
    image = {"spec": {"containers": [{"name": "c", "image": "y"}]}}
    changed = await client.patch(f"{PODS}/p", image, kind="strategic-merge-patch+json")
    assert changed.body["message"] == f'pods "p" is forbidden: violates {DETAIL}'
    debugger = {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}
    path = f"{PODS}/p/ephemeralcontainers"
    added = await client.patch(path, debugger, kind="strategic-merge-patch+json")
    assert added.body["message"] == f'pods "p" is forbidden: violates {DETAIL}'


async def test_invalid_pod_security_labels_are_refused_unless_unchanged(client):
    refused = await make_namespace(client, enforce="strict", warn_version="1.2")
    assert refused.status == 422
    assert refused.body["message"] == (
        'Namespace "guarded" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: '
        '"strict": must be one of privileged, baseline, restricted, '
        "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "
        '"1.2": must be "latest" or "v1.x"]'
    )


async def test_raised_level_warns_of_existing_pods(client):
    await make_namespace(client)
    host = {"name": "h", "hostPath": {"path": "/x"}}
    for name, spec in {
        "b": {"hostNetwork": True},
        "a": {"hostPID": True},
        "c": {"volumes": [host]},
        "d": {},
    }.items():
        await client.post(PODS, pod(name, **spec))
    assert warnings(await relabel(client, enforce="baseline", warn="privileged")) == [
        'existing pods in namespace "guarded" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 1 other pod): host namespaces",
        "c: hostPath volumes",
    ]


async def test_lowered_level_does_not_warn(client):
    await make_namespace(client, enforce="restricted")
    assert warnings(await relabel(client, enforce="baseline")) == []


class LeapingClock(RealClock):
    """A clock that advances by two seconds with each read."""

    def __init__(self):
        self._times = count(0, 2)

    def monotonic(self):
        return float(next(self._times))


async def test_existing_pods_are_checked_for_one_second():
    async with apiserver.running(clock=LeapingClock()) as client:
        await make_namespace(client)
        for name in "ab":
            await client.post(PODS, pod(name))
        assert warnings(await relabel(client, enforce="baseline")) == [
            "new PodSecurity enforce level only checked against the first 1 of 2 existing pods"
        ]


async def test_audit_annotations_have_pod_security_result(tmp_path):
    log = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={log}") as client:
        await make_namespace(client, audit="baseline")
        await client.post(PODS, pod(hostNetwork=True))
    (event,) = [
        event
        for event in map(orjson.loads, log.read_bytes().splitlines())
        if event["requestURI"] == PODS and event["stage"] == "ResponseComplete"
    ]
    annotations = event["annotations"]
    assert annotations["pod-security.kubernetes.io/enforce-policy"] == "privileged:latest"
    assert annotations["pod-security.kubernetes.io/audit-violations"] == f"would violate {DETAIL}"
    assert annotations["authorization.k8s.io/decision"] == "allow"


async def test_workload_of_missing_namespace_can_be_updated_unlike_pod(client):
    await make_namespace(client)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    selected = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    deployment = "/apis/apps/v1/namespaces/guarded/deployments"
    await client.post(deployment, {"metadata": {"name": "d"}, "spec": selected})
    await client.post(PODS, pod())
    await client.delete(NAMESPACE)
    emptied = {"metadata": {"name": "guarded"}, "spec": {"finalizers": []}}
    assert (await client.put(f"{NAMESPACE}/finalize", emptied)).status == 200
    image = {"spec": {"containers": [{"name": "c", "image": "y"}]}}
    updated = await client.patch(f"{deployment}/d", {"spec": {"template": image}})
    refused = await client.patch(f"{PODS}/p", image, kind="strategic-merge-patch+json")
    assert (updated.status, updated.body["metadata"]["generation"]) == (200, 2)
    problem = 'Internal error occurred: failed to lookup namespace "guarded"'
    assert (refused.status, refused.body["message"]) == (500, problem)
