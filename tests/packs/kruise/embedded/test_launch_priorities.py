"""An in-place update of containers with launch priorities stops at a container that does not start."""

import orjson

FAIL_START = "mockube.dev/fail-start.proxy"
CLONE_SET = """
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {{name: shop}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: shop}}}}
  updateStrategy: {{type: InPlaceIfPossible}}
  template:
    metadata:
      labels: {{app: shop}}
      annotations: {{mockube.dev/fail-start.proxy: "{fails}"}}
    spec:
      containers:
      - {{name: app, image: "app:{version}"}}
      - name: proxy
        image: "proxy:{version}"
        env: [{{name: KRUISE_CONTAINER_PRIORITY, value: "10"}}]
"""


def shop(version, *, fails=False):
    return CLONE_SET.format(version=version, fails=str(fails).lower())


def is_updated(tree):
    status = tree.get("status") or {}
    is_observed = status.get("observedGeneration") == tree["metadata"]["generation"]
    return is_observed and status.get("updatedAvailableReplicas") == 1


def statuses(pod):
    return {status["name"]: status for status in pod["status"].get("containerStatuses", ())}


def test_update_stops_at_container_that_fails_at_its_start(cluster):
    cluster.apply(shop(1))
    cluster.wait("CloneSet", "shop", is_updated)
    (pod,) = cluster.list("Pod")
    name = pod["metadata"]["name"]
    cluster.apply(shop(2, fails=True))
    stopped = cluster.wait("Pod", name, lambda tree: "waiting" in statuses(tree)["proxy"]["state"])
    assert statuses(stopped)["proxy"]["state"]["waiting"]["reason"] == "RunContainerError"
    assert (statuses(stopped)["app"]["image"], statuses(stopped)["app"]["restartCount"]) == ("app:1", 0)
    state = orjson.loads(stopped["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"])
    assert state["nextContainerImages"] == {"app": "app:2"}
    cluster.apply(shop(2))
    cluster.wait("Pod", name, lambda tree: tree["metadata"]["annotations"][FAIL_START] == "false")
    cluster.advance(30)
    updated = cluster.wait("Pod", name, lambda tree: statuses(tree)["app"]["image"] == "app:2")
    assert statuses(updated)["proxy"]["restartCount"] > 1
    cluster.wait("CloneSet", "shop", is_updated)
