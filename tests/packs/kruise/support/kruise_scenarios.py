"""Scenarios of user actions on OpenKruise's workloads in a cluster, step by step."""

from tests.packs.kruise.support import advancedsets, clonesets, uniteddeployments
from tests.packs.kruise.support.uniteddeployments import subset, united
from tests.support.controllers.cluster_scenarios import (
    STORAGE_CLASS,
    delete,
    is_gone,
    is_observed,
    patch,
    post,
)
from tests.support.controllers.statefulsets import claim_template, statefulset

ALPHA = "/apis/apps.kruise.io/v1alpha1/namespaces/default"
BETA = "/apis/apps.kruise.io/v1beta1/namespaces/default"
CLONES = f"{ALPHA}/clonesets"
SETS = f"{BETA}/statefulsets"
UNITED = f"{ALPHA}/uniteddeployments"


async def a_clone_set(cluster):
    strategy = {"type": "InPlaceIfPossible", "maxUnavailable": 1}
    await post(cluster, CLONES, clonesets.cloneset(replicas=3, updateStrategy=strategy))
    await cluster.until(_is_cloned(3))
    for spec, replicas in (
        ({"template": clonesets.template("a:2")}, 3),
        ({"template": clonesets.template("a:2", terminationGracePeriodSeconds=3)}, 3),
        ({"replicas": 4, "updateStrategy": {"maxUnavailable": 0, "maxSurge": 1}}, 4),
        ({"template": clonesets.template("a:2", terminationGracePeriodSeconds=4)}, 4),
        ({"replicas": 2}, 2),
    ):
        await patch(cluster, f"{CLONES}/web", {"spec": spec})
        await cluster.until(_is_cloned(replicas))
    await delete(cluster, f"{CLONES}/web")
    await cluster.until(is_gone("pods", "clonesets.apps.kruise.io", "controllerrevisions.apps"))


async def an_advanced_statefulset(cluster):
    await post(cluster, "/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASS)
    claim = claim_template()
    claim["spec"]["storageClassName"] = "quick"
    body = statefulset(
        podManagementPolicy="Parallel",
        template=advancedsets.template(),
        updateStrategy=advancedsets.in_place(maxUnavailable=2),
        volumeClaimTemplates=[claim],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
    )
    await post(cluster, SETS, body)
    await cluster.until(_is_set_up(3))
    for spec, replicas in (
        ({"template": advancedsets.template("a:2")}, 3),
        ({"template": advancedsets.template("a:2", made="anew")}, 3),
        ({"reserveOrdinals": [0], "replicas": 2}, 2),
    ):
        await patch(cluster, f"{SETS}/web", {"spec": spec})
        await cluster.until(_is_set_up(replicas))
    await cluster.until(lambda census: len(census.all("persistentvolumes")) == 2)
    await delete(cluster, f"{SETS}/web")
    await cluster.until(is_gone("pods", "persistentvolumeclaims", "persistentvolumes"))


async def a_united_deployment(cluster):
    template = uniteddeployments.template_of
    await post(cluster, UNITED, united("CloneSet", ["a", "b"], replicas=4))
    await cluster.until(_is_united(4))
    await patch(cluster, f"{UNITED}/foo", {"spec": _partitions(a=1, b=2)})
    await patch(cluster, f"{UNITED}/foo", {"spec": {"template": template("CloneSet", "a:2")}})
    await cluster.until(_has_updated(1))
    await patch(cluster, f"{UNITED}/foo", {"spec": _partitions(a=None, b=None)})
    await cluster.until(_is_united(4))
    await patch(cluster, f"{UNITED}/foo", {"spec": {"topology": {"subsets": [subset("b"), subset("c")]}}})
    await cluster.until(_is_united(4))
    other = {"cloneSetTemplate": None, **template("Deployment", "a:2")}
    await patch(cluster, f"{UNITED}/foo", {"spec": {"template": other, "replicas": 6}})
    await cluster.until(_is_united(6))
    await cluster.until(is_gone("clonesets.apps.kruise.io"))


def _partitions(**partitions):
    return {"updateStrategy": {"manualUpdate": {"partitions": partitions}}}


# --- conditions


def _is_cloned(replicas):
    fields = ("replicas", "availableReplicas", "updatedAvailableReplicas")
    return _counts("clonesets.apps.kruise.io", "web", fields, replicas)


def _is_set_up(replicas):
    fields = ("replicas", "availableReplicas", "updatedAvailableReplicas")
    return _counts("statefulsets.apps.kruise.io", "web", fields, replicas)


def _is_united(replicas):
    fields = ("replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas")
    has_counts = _counts("uniteddeployments.apps.kruise.io", "foo", fields, replicas)
    return lambda census: has_counts(census) and len(census.all("pods")) == replicas


def _has_updated(pods):
    return _counts("uniteddeployments.apps.kruise.io", "foo", ("updatedReadyReplicas",), pods)


def _counts(resource, name, fields, replicas):
    def all_count(census):
        found = census.one(resource, name)
        status = found.get("status") or {}
        return is_observed(found) and [status.get(field) for field in fields] == [replicas] * len(fields)

    return all_count


KRUISE_SCENARIOS = (a_clone_set, an_advanced_statefulset, a_united_deployment)
