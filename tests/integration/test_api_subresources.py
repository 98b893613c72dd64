"""Subresources: scale, binding, eviction, approval."""

import pytest

from tests.support.server import apiserver

PODS = "/api/v1/namespaces/default/pods"
DENIED = "does not allow evicting pods currently"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


def pod(name="p", **spec):
    containers = [{"name": "c", "image": "nginx"}]
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": containers} | spec}


def deployment(replicas):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "d"},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


# --- scale


async def test_scale_reads_and_sets_replicas(client):
    await client.post(DEPLOYMENTS, deployment(2))
    scale = (await client.get(f"{DEPLOYMENTS}/d/scale")).body
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 0, "selector": "app=web"},
    )
    scale["spec"]["replicas"] = 3
    assert (await client.put(f"{DEPLOYMENTS}/d/scale", scale)).body["spec"] == {"replicas": 3}
    stored = (await client.get(f"{DEPLOYMENTS}/d")).body
    assert (stored["spec"]["replicas"], stored["metadata"]["generation"]) == (3, 2)
    stale = await client.put(f"{DEPLOYMENTS}/d/scale", scale)
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")


async def test_scale_of_zero_omits_replicas(client):
    await client.post(DEPLOYMENTS, deployment(2))
    scaled = await client.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 0}})
    assert scaled.body["spec"] == {}
    assert (await client.get(f"{DEPLOYMENTS}/d")).body["spec"]["replicas"] == 0


async def test_scale_changes_replicas_only(client):
    created = (await client.post(DEPLOYMENTS, deployment(2))).body
    await client.patch(
        f"{DEPLOYMENTS}/d/scale", {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 4}}
    )
    stored = (await client.get(f"{DEPLOYMENTS}/d")).body
    assert stored["metadata"].get("labels") is None
    assert stored["spec"] == created["spec"] | {"replicas": 4}


def scale(**spec):
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": spec}


async def managers(client):
    """Return the managers of the replicas."""
    entries = (await client.get(f"{DEPLOYMENTS}/d")).body["metadata"]["managedFields"]
    return [
        (one["manager"], one["operation"], one["apiVersion"], one.get("subresource", ""))
        for one in entries
        if "f:replicas" in one["fieldsV1"].get("f:spec", {})
    ]


async def test_applied_scale_takes_over_replicas(client):
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=scaler"
    await client.post(f"{DEPLOYMENTS}?fieldManager=maker", deployment(2))
    conflict = await client.patch(path, scale(replicas=5), kind="apply-patch+yaml")
    assert (conflict.status, conflict.body["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "maker" using autoscaling/v1: .spec.replicas',
    )
    applied = await client.patch(f"{path}&force=true", scale(replicas=5), kind="apply-patch+yaml")
    assert (applied.body["kind"], applied.body["spec"]) == ("Scale", {"replicas": 5})
    assert await managers(client) == [("scaler", "Apply", "apps/v1", "scale")]
    again = await client.patch(path, scale(replicas=6), kind="apply-patch+yaml")
    assert again.body["spec"] == {"replicas": 6}


async def test_unchanged_applied_scale_shares_replicas(client):
    await client.post(f"{DEPLOYMENTS}?fieldManager=maker", deployment(2))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=scaler"
    await client.patch(path, scale(replicas=2), kind="apply-patch+yaml")
    assert await managers(client) == [
        ("scaler", "Apply", "apps/v1", "scale"),
        ("maker", "Update", "apps/v1", ""),
    ]


async def test_scale_apply_needs_scale_body(client):
    await client.post(DEPLOYMENTS, deployment(2))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=scaler"
    other = deployment(3) | {"apiVersion": "apps/v1", "kind": "Deployment"}
    answer = await client.patch(path, other, kind="apply-patch+yaml")
    assert (answer.status, answer.body["message"]) == (
        400,
        "invalid object type: apps/v1, Kind=Deployment",
    )


async def test_scale_table_has_its_columns(client):
    await client.post(DEPLOYMENTS, deployment(2))
    table = await client.get(f"{DEPLOYMENTS}/d/scale", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [column["name"] for column in table.body["columnDefinitions"]] == [
        "Name",
        "Desired",
        "Available",
        "Age",
    ]
    assert table.body["rows"][0]["cells"][:3] == ["d", 2, 0]


async def test_scale_of_other_object_is_refused(client):
    await client.post(DEPLOYMENTS, deployment(2))
    refused = await client.patch(f"{DEPLOYMENTS}/d/scale", {"metadata": {"uid": "other"}})
    assert refused.status == 409
    assert (
        "deployments/scale.apps" in refused.body["message"]
        or "deployments.apps/scale" in refused.body["message"]
    )


# --- binding


def binding(node="n1", **metadata):
    return {"metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": node}}


async def test_pod_is_bound_once(client):
    await client.post(PODS, pod())
    bound = await client.post(f"{PODS}/p/binding", binding(annotations={"by": "me"}))
    assert (bound.status, bound.body["status"]) == (201, "Success")
    stored = (await client.get(f"{PODS}/p")).body
    assert stored["spec"]["nodeName"] == "n1"
    assert stored["metadata"]["annotations"]["by"] == "me"
    assert [(one["type"], one["status"]) for one in stored["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    again = await client.post("/api/v1/namespaces/default/bindings", binding("n2"))
    assert again.status == 409
    assert again.body["message"].endswith('pod p is already assigned to node "n1"')


async def test_bound_pod_gets_topology_labels_of_node(client):
    zone = {"topology.kubernetes.io/zone": "z", "other": "1"}
    await client.post("/api/v1/nodes", {"metadata": {"name": "n1", "labels": zone}})
    await client.post(PODS, pod())
    await client.post(f"{PODS}/p/binding", binding())
    labels = (await client.get(f"{PODS}/p")).body["metadata"]["labels"]
    assert labels == {"app": "web", "topology.kubernetes.io/zone": "z"}


@pytest.mark.parametrize(
    ("sent", "status", "expected_message"),
    [
        pytest.param(binding(uid="other"), 409, "UID in precondition: other", id="another pod"),
        pytest.param(
            binding(resourceVersion="1"), 409, "ResourceVersion in precondition: 1", id="another version"
        ),
        pytest.param(
            binding() | {"target": {"kind": "Node"}}, 500, "target.name: Required value", id="no node"
        ),
        pytest.param(
            binding("N 1"),
            500,
            'target.name: Invalid value: "N 1": a lowercase RFC 1123',
            id="no node's name",
        ),
        pytest.param(
            binding() | {"metadata": {"name": "q"}}, 400, "name in URL does not match name", id="another name"
        ),
    ],
)
async def test_invalid_binding_is_refused(client, sent, status, expected_message):
    await client.post(PODS, pod())
    refused = await client.post(f"{PODS}/p/binding", sent)
    assert refused.status == status
    assert expected_message in refused.body["message"]


async def test_gated_pod_cannot_be_bound(client):
    await client.post(PODS, pod(schedulingGates=[{"name": "g"}]))
    refused = await client.post(f"{PODS}/p/binding", binding())
    assert refused.body["message"].endswith("pod p has non-empty .spec.schedulingGates")


async def test_dry_run_binding_binds_nothing(client):
    await client.post(PODS, pod())
    assert (await client.post(f"{PODS}/p/binding?dryRun=All", binding())).status == 201
    assert "nodeName" not in (await client.get(f"{PODS}/p")).body["spec"]


# --- eviction

EVICTION = {"metadata": {"name": "p"}}


async def run(client, *, ready=True):
    """Create a pod that runs on a node."""
    await client.post(PODS, pod(nodeName="n1"))
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    await client.patch(f"{PODS}/p/status", {"status": {"phase": "Running", "conditions": conditions}})


async def budget(client, name="b", policy=None, **status):
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    spec |= {"unhealthyPodEvictionPolicy": policy} if policy else {}
    await client.post(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    written = {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1} | status
    await client.patch(f"{BUDGETS}/{name}/status", {"status": written})


async def evict(client, **query):
    parameters = "&".join(f"{name}={value}" for name, value in query.items())
    return await client.post(f"{PODS}/p/eviction?{parameters}", EVICTION)


async def test_pod_without_budget_is_evicted_gracefully(client):
    await run(client)
    assert (await evict(client)).status == 201
    left = (await client.get(f"{PODS}/p")).body
    assert left["metadata"]["deletionGracePeriodSeconds"] == 30
    assert [one["reason"] for one in left["status"]["conditions"] if one["type"] == "DisruptionTarget"] == [
        "EvictionByEvictionAPI"
    ]


async def test_eviction_uses_allowed_disruption(client):
    await run(client)
    await budget(client, disruptionsAllowed=1)
    assert (await evict(client)).status == 201
    status = (await client.get(f"{BUDGETS}/b")).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert status["disruptedPods"].keys() == {"p"}
    assert [(one["reason"], one["status"]) for one in status["conditions"]] == [("InsufficientPods", "False")]


def denied_condition(reason, message):
    """The condition of a budget that allows no disruption."""
    since = "2030-01-01T00:00:00Z"
    condition = {"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": since}
    return [condition | {"reason": reason, "message": message}]


@pytest.mark.parametrize(
    ("healthy", "conditions", "reason"),
    [
        (1, denied_condition("InsufficientPods", ""), "needs 1 healthy pods and has 1 currently"),
        (1, denied_condition("SyncFailed", "why"), f"{DENIED} because it failed sync: why"),
        (2, [], DENIED),
        (2, denied_condition("InsufficientPods", "why"), f"{DENIED} (InsufficientPods): why"),
    ],
)
async def test_eviction_beyond_budget_is_refused(client, healthy, conditions, reason):
    await run(client)
    await budget(client, disruptionsAllowed=0, currentHealthy=healthy, conditions=conditions)
    refused = await evict(client)
    assert refused.status == 429
    assert refused.body["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": f"The disruption budget b {reason}"}
    ]
    assert "deletionTimestamp" not in (await client.get(f"{PODS}/p")).body["metadata"]


async def test_refusal_by_budget_with_many_pending_evictions_names_its_cause(client):
    await run(client)
    pending = {f"p{number}": "2030-01-01T00:00:00Z" for number in range(2001)}
    await budget(client, disruptionsAllowed=1, disruptedPods=pending)
    refused = await evict(client)
    assert refused.status == 403
    problem = "too many pending evictions not confirmed by PDB controller"
    assert refused.body["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": f"The disruption budget b {DENIED}: {problem}"}
    ]


@pytest.mark.parametrize(("left", "status"), [(0, 429), (1, 422)])
async def test_options_of_eviction_are_validated_after_budget(client, left, status):
    await run(client)
    await budget(client, disruptionsAllowed=left, conditions=denied_condition("InsufficientPods", ""))
    refused = await client.post(
        f"{PODS}/p/eviction", EVICTION | {"deleteOptions": {"propagationPolicy": "Other"}}
    )
    assert refused.status == status
    assert (await client.get(f"{BUDGETS}/b")).body["status"].get("disruptionsAllowed", 0) == 0


async def test_dry_run_of_eviction_and_of_its_options_must_match(client):
    await run(client)
    options = {"deleteOptions": {"dryRun": ["Other"]}}
    refused = await client.post(f"{PODS}/p/eviction?dryRun=All", EVICTION | options)
    problem = "Non-matching dry-run options in request and content: [All] and [Other]"
    assert (refused.status, refused.body["message"]) == (500, problem)


async def test_dry_run_eviction_changes_nothing(client):
    await run(client)
    await budget(client, disruptionsAllowed=1)
    assert (await evict(client, dryRun="All")).status == 201
    assert (await client.get(f"{BUDGETS}/b")).body["status"]["disruptionsAllowed"] == 1
    assert "deletionTimestamp" not in (await client.get(f"{PODS}/p")).body["metadata"]


@pytest.mark.parametrize(
    ("policy", "healthy", "status"),
    [
        pytest.param(None, 2, 201, id="enough other healthy pods"),
        pytest.param(None, 0, 429, id="too few healthy pods"),
        pytest.param("AlwaysAllow", 0, 201, id="budget with AlwaysAllow"),
    ],
)
async def test_eviction_of_unready_pod_follows_policy(client, policy, healthy, status):
    await run(client, ready=False)
    await budget(client, policy=policy, disruptionsAllowed=0, currentHealthy=healthy)
    assert (await evict(client)).status == status


async def test_pending_pod_is_evicted_without_budget(client):
    await client.post(PODS, pod())
    await budget(client, disruptionsAllowed=0)
    assert (await evict(client)).status == 201
    assert (await client.get(f"{PODS}/p")).status == 404


async def test_pod_in_two_budgets_cannot_be_evicted(client):
    await run(client)
    await budget(client, "b", disruptionsAllowed=1)
    await budget(client, "c", disruptionsAllowed=1)
    refused = await evict(client)
    assert (refused.status, refused.body["message"][:13]) == (500, "This pod has ")


# --- others


async def test_resize_changes_resources_only(client):
    asked = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "500m"}}}
    await client.post(PODS, pod(containers=[asked]))
    changed = pod(nodeName="elsewhere")
    changed["spec"]["containers"][0] |= {"image": "other", "resources": {"requests": {"cpu": "1"}}}
    resized = await client.patch(
        f"{PODS}/p/resize", {"spec": changed["spec"]}, kind="strategic-merge-patch+json"
    )
    assert resized.status == 200, resized.body
    (container,) = resized.body["spec"]["containers"]
    assert (container["image"], container["resources"]) == ("nginx", {"requests": {"cpu": "1"}})
    assert "nodeName" not in resized.body["spec"]
    assert resized.body["metadata"]["generation"] == 2


async def test_subresource_writer_manages_sent_fields(client):
    await client.post(PODS, pod(), User_Agent="maker/1")
    debugger = {"name": "d", "image": "busybox"}
    patched = await client.patch(
        f"{PODS}/p/ephemeralcontainers",
        {"metadata": {"labels": {"mine": "1"}}, "spec": {"ephemeralContainers": [debugger]}},
        kind="strategic-merge-patch+json",
        User_Agent="debug/1",
    )
    metadata = patched.body["metadata"]
    assert "mine" not in metadata["labels"]
    (entry,) = [entry for entry in metadata["managedFields"] if entry["manager"] == "debug"]
    assert entry["subresource"] == "ephemeralcontainers"
    assert entry["fieldsV1"].keys() == {"f:metadata", "f:spec"}  # what was sent, though it is not accepted
