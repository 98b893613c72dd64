"""Scenarios of HorizontalPodAutoscalers: the requests that create each, and the expected status and events.

Definitions of the test replace the APIs of metrics, so that a real control plane can run the same scenarios.
"""

ANY_VALUE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
PLURALS = {"Widget": "widgets", "Gadget": "gadgets"}


def _definition(group, plural, kind, version, *, list_kind=None, subresources=None):
    row = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": ANY_VALUE}}
    names = {"plural": plural, "kind": kind, **({"listKind": list_kind} if list_kind else {})}
    versions = [row | ({"subresources": subresources} if subresources else {})]
    annotations = {"api-approved.kubernetes.io": "unapproved, for tests"}
    return {
        "metadata": {"name": f"{plural}.{group}", "annotations": annotations},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


def definitions():
    with_selector = {"scale": SCALE | {"labelSelectorPath": ".status.selector"}, "status": {}}
    external = "external.metrics.k8s.io"
    return (
        _definition("metrics.k8s.io", "pods", "PodMetrics", "v1beta1"),
        _definition(external, "queue", "ExternalMetricValue", "v1beta1", list_kind="ExternalMetricValueList"),
        _definition("example.com", "widgets", "Widget", "v1", subresources=with_selector),
        _definition("example.com", "gadgets", "Gadget", "v1", subresources={"scale": SCALE, "status": {}}),
    )


def first_requests(scenario):
    """Yield the requests that come before the pods, as pairs of a path and a body."""
    namespace = scenario["id"]
    if "deployment" in scenario:
        labels = {"a": "d"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": scenario["deployment"]["containers"]},
        }
        spec = {
            "replicas": scenario["deployment"]["replicas"],
            "selector": {"matchLabels": labels},
            "template": template,
        }
        yield (
            f"/apis/apps/v1/namespaces/{namespace}/deployments",
            {"metadata": {"name": "d"}, "spec": spec},
        )
    if custom := scenario.get("custom"):
        path = f"/apis/example.com/v1/namespaces/{namespace}/{PLURALS[custom['kind']]}"
        spec = {"replicas": custom["replicas"]}
        yield (
            path,
            {
                "apiVersion": "example.com/v1",
                "kind": custom["kind"],
                "metadata": {"name": "w"},
                "spec": spec,
            },
        )
    for one in scenario.get("external", ()):
        metadata = {"name": one["name"], "labels": one["labels"]}
        body = {"apiVersion": "external.metrics.k8s.io/v1beta1", "kind": "ExternalMetricValue"}
        sample = {"metricName": "queue", "timestamp": "2024-01-01T00:00:00Z", "value": one["value"]}
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/queue"
        yield path, {**body, "metadata": metadata, **sample}


def statuses(scenario, pods):
    """Yield the writes of kubelets and controllers for these pods, as pairs of a path and a body."""
    namespace, custom = scenario["id"], scenario.get("custom")
    if custom and custom["status"]:
        path = f"/apis/example.com/v1/namespaces/{namespace}/{PLURALS[custom['kind']]}/w/status"
        yield path, {"status": custom["status"]}
    for name, pod in zip(pods, scenario["pods"], strict=False):
        ready = {"type": "Ready", "status": pod["ready"], "lastTransitionTime": "2020-01-01T01:00:00Z"}
        status = {"phase": pod["phase"], "startTime": "2020-01-01T00:00:00Z", "conditions": [ready]}
        yield f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status}


def last_requests(scenario, pods):
    """Yield the pods' metrics and the autoscaler."""
    namespace = scenario["id"]
    for name, pod in zip(pods, scenario["pods"], strict=False):
        if pod["usage"] is not None:
            containers = [{"name": container, "usage": pod["usage"]} for container in pod["containers"]]
            yield (
                f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods",
                {
                    "apiVersion": "metrics.k8s.io/v1beta1",
                    "kind": "PodMetrics",
                    "metadata": {"name": name, "labels": {"a": "d"}},
                    "timestamp": "2024-01-01T00:00:00Z",
                    "window": "30s",
                    "containers": containers,
                },
            )
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    yield path, {"metadata": {"name": "h"}, "spec": scenario["autoscaler"]}


def autoscaler_report(autoscaler, events, pods):
    """Return an autoscaler's status and events, without what differs from run to run."""
    status = dict(autoscaler["status"])
    status.pop("lastScaleTime", None)
    status["conditions"] = [
        {field: text for field, text in one.items() if field != "lastTransitionTime"}
        for one in status.get("conditions") or ()
    ]
    own_events = {
        (one["type"], one["reason"], _without(one["message"], pods), one["source"]["component"])
        for one in events
        if one["involvedObject"]["kind"] == "HorizontalPodAutoscaler"
    }
    for condition in status["conditions"]:
        condition["message"] = _without(condition["message"], pods)
    return {"status": status, "events": sorted(map(list, own_events))}


def _without(text, pods):
    for name in pods:
        text = text.replace(name, "POD")
    return text
