"""Bindings and evictions of pods: what is stored, and when they are refused."""

import pytest

from tests.support.server.fake_admission import Interfering, Refusing, registry_with
from tests.support.server.memory_api import CORE, PODS

POD = f"{PODS}/p"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def pod(**spec):
    return {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def binding(node="n1", **metadata):
    return {"metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": node}}


@pytest.fixture
async def created(api):
    """A pod without a node."""
    return (await api.create(PODS, pod())).body


async def test_binding_sets_node_and_condition_of_pod(api, created):
    answer = await api.create(f"{POD}/binding", binding())
    stored = await api.stored(POD)
    assert (answer.code, answer.body["status"], stored["spec"]["nodeName"]) == (201, "Success", "n1")
    scheduled = {each["type"]: each["status"] for each in stored["status"]["conditions"]}
    assert scheduled == {"PodScheduled": "True"}


@pytest.mark.kills("pod that has a node is bound again")
async def test_pod_is_bound_once(api, created):
    await api.create(f"{POD}/binding", binding())
    answer = await api.create(f"{POD}/binding", binding("n2"))
    assert answer.refusal == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )
    assert (await api.stored(POD))["spec"]["nodeName"] == "n1"


async def test_pod_with_scheduling_gate_is_not_bound(api):
    await api.create(PODS, pod(schedulingGates=[{"name": "example.com/gate"}]))
    answer = await api.create(f"{POD}/binding", binding())
    assert answer.code == 409
    assert answer.message.endswith("pod p has non-empty .spec.schedulingGates")
    assert "nodeName" not in (await api.stored(POD))["spec"]


async def test_binding_of_another_pod_of_the_same_name_is_conflict(api, created):
    answer = await api.create(f"{POD}/binding", binding(uid="other"))
    assert answer.code == 409
    assert "Precondition failed: UID in precondition: other" in answer.message


@pytest.mark.kills("binding does not compare the revision")
async def test_pod_that_is_bound_meanwhile_is_not_bound_again(api, created):
    """The pod is read after admission: the second binding is stored between the read and the write of the first one."""
    find, found = api.registry.kv.range, []

    async def bind_after_read(request):
        result = await find(request)
        if not found:
            found.append(result)
            assert (await api.create(f"{POD}/binding", binding("n2"))).code == 201
        return result

    api.registry.kv.range = bind_after_read
    answer = await api.create(f"{POD}/binding", binding())
    assert answer.code == 409
    assert (await api.stored(POD))["spec"]["nodeName"] == "n2"


async def test_binding_that_plugin_refuses_is_not_stored(api, created):
    registry = registry_with(api, Refusing())
    answer = await api.send("POST", f"{POD}/binding", binding(), registry=registry)
    assert answer.refusal == (403, 'pods "p" is forbidden: no such writes today')
    assert "nodeName" not in (await api.stored(POD))["spec"]


# --- evictions


EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}


async def run_pod(api, *, allowed):
    """Create a ready pod with a budget that allows some disruptions."""
    await api.create_all(
        (PODS, pod(nodeName="n")),
        (
            BUDGETS,
            {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
        ),
    )
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(f"{POD}/status", {"status": ready})
    budget = {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1 + allowed}
    budget |= {"desiredHealthy": 1, "expectedPods": 1 + allowed}
    answer = await api.patch(f"{BUDGETS}/b/status", {"status": budget})
    assert answer.code == 200, answer.message
    await api.settle()


async def test_evicted_pod_is_marked_and_budget_counts_it(api):
    await run_pod(api, allowed=1)
    answer = await api.create(f"{POD}/eviction", EVICTION)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    stored, budget = await api.stored(POD), await api.stored(f"{BUDGETS}/b")
    assert "deletionTimestamp" in stored["metadata"]
    conditions = {each["type"]: each.get("reason") for each in stored["status"]["conditions"]}
    assert conditions["DisruptionTarget"] == "EvictionByEvictionAPI"
    assert (budget["status"]["disruptionsAllowed"], [*budget["status"]["disruptedPods"]]) == (0, ["p"])


@pytest.mark.kills("eviction ignores budgets")
async def test_pod_whose_budget_allows_no_disruption_is_not_evicted(api):
    await run_pod(api, allowed=0)
    answer = await api.create(f"{POD}/eviction", EVICTION)
    assert answer.refusal == (
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
    )
    (cause,) = answer.body["details"]["causes"]
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert "deletionTimestamp" not in (await api.stored(POD))["metadata"]


async def test_dry_run_of_eviction_changes_neither_pod_nor_budget(api):
    await run_pod(api, allowed=1)
    before = await api.stored(POD), await api.stored(f"{BUDGETS}/b")
    answer = await api.create(f"{POD}/eviction", EVICTION, dryRun="All")
    assert answer.code == 201
    assert (await api.stored(POD), await api.stored(f"{BUDGETS}/b")) == before


async def test_pending_pod_is_evicted_without_budget(api):
    await run_pod(api, allowed=0)
    await api.patch(f"{POD}/status", {"status": {"phase": "Pending"}})
    assert (await api.create(f"{POD}/eviction", EVICTION)).code == 201
    assert "deletionTimestamp" in (await api.stored(POD))["metadata"]


async def test_two_evictions_share_one_allowed_disruption(api):
    """The second eviction uses the disruption while the first one is admitted."""
    await run_pod(api, allowed=1)
    await api.create(PODS, pod(nodeName="n") | {"metadata": {"name": "q", "labels": {"a": "b"}}})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(f"{PODS}/q/status", {"status": ready})
    codes = []

    async def evict_other():
        other = {**EVICTION, "metadata": {"name": "q"}}
        codes.append((await api.create(f"{PODS}/q/eviction", other)).code)

    answer = await api.send(
        "POST", f"{POD}/eviction", EVICTION, registry=registry_with(api, Interfering(evict_other))
    )
    assert (codes, answer.code) == ([201], 429)
    assert "deletionTimestamp" not in (await api.stored(POD))["metadata"]
    assert (await api.stored(f"{CORE}/pods/q"))["metadata"]["deletionTimestamp"]


@pytest.mark.kills("eviction does not compare the version that it checked")
@pytest.mark.parametrize("phase", ["Pending", "Running"])
async def test_pod_that_becomes_ready_during_eviction_is_not_evicted(api, phase):
    """The pod becomes ready between the check whether it needs a disruption, and its deletion."""
    await run_pod(api, allowed=0)
    await api.patch(f"{POD}/status", {"status": {"phase": phase, "conditions": None}})
    key = api.registry.layout.object(api.catalog.rows["", "v1", "pods"], "default", "p")
    find, found = api.registry.kv.range, []

    async def become_ready_after_read(request):
        result = await find(request)
        if not found and request.key == key:
            found.append(result)
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            assert (await api.patch(f"{POD}/status", {"status": ready})).code == 200
        return result

    api.registry.kv.range = become_ready_after_read
    answer = await api.create(f"{POD}/eviction", EVICTION)
    assert (answer.code, len(found)) == (429, 1)
    assert "deletionTimestamp" not in (await api.stored(POD))["metadata"]


@pytest.mark.kills("eviction uses a budget that its controller has not seen")
async def test_pod_is_not_evicted_by_budget_that_its_controller_has_not_seen(api):
    await run_pod(api, allowed=1)
    assert (await api.patch(f"{BUDGETS}/b", {"spec": {"minAvailable": 2}})).code == 200
    await api.settle()
    answer = await api.create(f"{POD}/eviction", EVICTION)
    assert answer.code == 429
    (cause,) = answer.body["details"]["causes"]
    assert cause["message"] == "The disruption budget b is still being processed by the server."
    assert "deletionTimestamp" not in (await api.stored(POD))["metadata"]
