"""Scenarios of user actions on a cluster: each step starts when the previous one has had its effect."""

from tests.support.controllers.deployments import RECREATE, deployment, rolling, template
from tests.support.controllers.statefulsets import claim_template, statefulset

APPS = "/apis/apps/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"
SILENCE = "mockube.dev/stop-heartbeats"
SERVICE = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
BUDGET = {
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
STORAGE_CLASS = {"metadata": {"name": "quick"}, "provisioner": "simulated.mockube.dev"}


async def a_deployment(cluster):
    await post(cluster, f"{CORE}/services", SERVICE)
    await post(cluster, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", BUDGET)
    await post(cluster, f"{APPS}/deployments", deployment(strategy=rolling(1, 1)))
    await cluster.until(_is_deployed(3))
    for spec, replicas in (
        ({"template": template("a:2")}, 3),
        ({"replicas": 5}, 5),
        ({"replicas": 2}, 2),
        ({"template": template()}, 2),
    ):
        await patch(cluster, f"{APPS}/deployments/web", {"spec": spec})
        await cluster.until(_is_deployed(replicas))
        await cluster.until(_is_served_by(replicas))
    await delete(cluster, f"{APPS}/deployments/web")
    await cluster.until(is_gone("pods", "replicasets.apps", "deployments.apps"))
    await cluster.until(_is_served_by(0))


async def a_deployment_made_anew_each_time(cluster):
    await post(cluster, f"{APPS}/deployments", deployment(replicas=2, strategy=RECREATE))
    await cluster.until(_is_deployed(2))
    await patch(cluster, f"{APPS}/deployments/web", {"spec": {"template": template("a:2")}})
    await cluster.until(_is_deployed(2))
    await delete(cluster, f"{APPS}/deployments/web", propagationPolicy="Foreground")
    await cluster.until(is_gone("pods", "replicasets.apps", "deployments.apps"))


async def a_statefulset(cluster):
    await post(cluster, "/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASS)
    claim = claim_template()
    claim["spec"]["storageClassName"] = "quick"
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    body = statefulset(volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy)
    await post(cluster, f"{APPS}/statefulsets", body)
    await cluster.until(_is_set_up(3))
    await patch(cluster, f"{APPS}/statefulsets/web", {"spec": {"template": template("a:2")}})
    await cluster.until(_is_set_up(3))
    await patch(cluster, f"{APPS}/statefulsets/web", {"spec": {"replicas": 1}})
    await cluster.until(_is_set_up(1))
    await cluster.until(lambda census: len(census.all("persistentvolumes")) == 1)
    await delete(cluster, f"{APPS}/statefulsets/web")
    await cluster.until(is_gone("pods", "persistentvolumeclaims", "persistentvolumes"))


async def a_namespace(cluster):
    await post(cluster, "/api/v1/namespaces", {"metadata": {"name": "team"}})
    await cluster.until(lambda census: len(census.all("serviceaccounts")) == len(census.all("namespaces")))
    for path, body in (
        ("/api/v1/namespaces/team/services", SERVICE),
        ("/apis/apps/v1/namespaces/team/deployments", deployment()),
        ("/apis/apps/v1/namespaces/team/statefulsets", statefulset(replicas=1)),
    ):
        await post(cluster, path, {**body, "metadata": {"name": body["metadata"]["name"]}})
    await cluster.until(lambda census: _is_deployed(3)(census) and _is_set_up(1)(census))
    await delete(cluster, "/api/v1/namespaces/team")
    await cluster.until(lambda census: census.one("namespaces", "team") is None)


async def a_node_that_dies_and_comes_back(cluster):
    await post(cluster, f"{CORE}/services", SERVICE)
    await post(cluster, f"{APPS}/deployments", deployment())
    await cluster.until(_is_deployed(3))
    await cluster.until(_is_served_by(3))
    await patch(cluster, "/api/v1/nodes/node-1", {"metadata": {"annotations": {SILENCE: "true"}}})
    await cluster.until(
        lambda census: any("deletionTimestamp" in pod["metadata"] for pod in census.all("pods"))
    )
    await cluster.until(_has_available(3))
    await patch(cluster, "/api/v1/nodes/node-1", {"metadata": {"annotations": {SILENCE: None}}})
    await cluster.until(lambda census: len(census.all("pods")) == 3)
    await cluster.until(_is_deployed(3))


# --- conditions


def _is_deployed(replicas):
    def is_deployed(census):
        found = census.one("deployments.apps", "web")
        status = found.get("status") or {}
        counts = [status.get(field) for field in ("replicas", "availableReplicas", "updatedReplicas")]
        return is_observed(found) and counts == [replicas] * 3 and not status.get("terminatingReplicas")

    return is_deployed


def _has_available(replicas):
    def has_available(census):
        return census.one("deployments.apps", "web")["status"].get("availableReplicas") == replicas

    return has_available


def _is_set_up(replicas):
    def is_set_up(census):
        found = census.one("statefulsets.apps", "web")
        status = found.get("status") or {}
        counts = [status.get(field) for field in ("replicas", "availableReplicas", "updatedReplicas")]
        return (
            is_observed(found)
            and counts == [replicas] * 3
            and status["currentRevision"] == status["updateRevision"]
        )

    return is_set_up


def is_observed(found):
    return (found.get("status") or {}).get("observedGeneration") == found["metadata"]["generation"]


def _is_served_by(pods):
    def is_served(census):
        slices = census.all("endpointslices.discovery.k8s.io")
        ready_endpoints = [
            endpoint
            for one in slices
            for endpoint in one.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
        ]
        return len(ready_endpoints) == pods

    return is_served


def is_gone(*resources):
    def all_are_gone(census):
        return not any(census.all(resource) for resource in resources)

    return all_are_gone


# --- actions


async def post(cluster, path, body):
    answer = await cluster.server.post(path, body)
    assert answer.status == 201, answer.data


async def patch(cluster, path, body):
    answer = await cluster.server.patch(path, body, kind="merge-patch+json")
    assert answer.status == 200, answer.data


async def delete(cluster, path, **options):
    answer = await cluster.server.delete(path, {"propagationPolicy": "Background", **options})
    assert answer.status in (200, 202), answer.data


SCENARIOS = (
    a_deployment,
    a_deployment_made_anew_each_time,
    a_statefulset,
    a_namespace,
    a_node_that_dies_and_comes_back,
)
