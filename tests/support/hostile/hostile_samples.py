"""Valid requests from which hostile ones are made: the recorded requests, and a few others."""

from dataclasses import dataclass

from tests.support.recorded import recordings

NAMESPACE = "default"


@dataclass(frozen=True)
class Sample:
    """A valid request."""

    method: str
    path: str
    body: object = None


def recorded_samples():
    """Empty if there are no recordings."""
    return [
        Sample(
            step["request"]["method"],
            step["request"]["path"].replace("${ns}", NAMESPACE),
            recordings.filled_in(step["request"].get("body")),
        )
        for param in recordings.cases()
        if param.values[0] is not None
        for step in param.values[0]["steps"]
        if "method" in step["request"]
    ]


def _object_samples(group_version, plural, kind, **content):
    prefix = "/api/" if "/" not in group_version else "/apis/"
    path = f"{prefix}{group_version}/namespaces/{NAMESPACE}/{plural}"
    metadata = {
        "name": "a",
        "labels": {"app": "a"},
        "annotations": {"a": "b"},
        "finalizers": ["example.com/x"],
    }
    tree = {"kind": kind, "apiVersion": group_version, "metadata": metadata, **content}
    yield Sample("POST", path, tree)
    yield Sample("PUT", f"{path}/a", tree)
    yield Sample("PUT", f"{path}/a/status", tree)
    yield Sample("PATCH", f"{path}/a", tree)
    yield Sample(
        "PATCH",
        f"{path}/a",
        [
            {"op": "test", "path": "/kind", "value": kind},
            {"op": "move", "from": "/metadata/labels", "path": "/x"},
        ],
    )
    yield Sample(
        "DELETE",
        f"{path}/a",
        {"kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": "u"}},
    )
    yield Sample("GET", f"{path}/a")
    yield Sample("GET", f"{path}?watch=1&timeoutSeconds=1")
    yield Sample("DELETE", path)


_POD = {
    "containers": [{
        "name": "c", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "1"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}], "livenessProbe": {"httpGet": {"port": "http"}},
    }],
    "volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}],
    "tolerations": [{"key": "k", "operator": "Exists"}], "nodeSelector": {"a": "b"}, "securityContext": {"runAsUser": 1},
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t", "labelSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}}]}},
}  # fmt: skip
_TEMPLATE = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD},
}
_SERVICE = {
    "selector": {"a": "b"},
    "ports": [{"name": "p", "port": 80, "targetPort": "http"}],
    "type": "NodePort",
    "clusterIP": "10.0.0.9",
}
_HPA = {
    "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}, "maxReplicas": 3,
    "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}}],
}  # fmt: skip

OWN = (
    *_object_samples("v1", "configmaps", "ConfigMap", data={"k": "v"}, binaryData={"b": "AAE="}),
    *_object_samples("v1", "secrets", "Secret", stringData={"k": "v"}, type="Opaque"),
    *_object_samples("v1", "pods", "Pod", spec=_POD, status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    *_object_samples("v1", "services", "Service", spec=_SERVICE),
    *_object_samples("v1", "events", "Event", involvedObject={"kind": "Pod", "name": "a"}, reason="R", count=1),
    *_object_samples("apps/v1", "deployments", "Deployment", spec=_TEMPLATE | {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": "25%"}}}),
    *_object_samples("apps/v1", "statefulsets", "StatefulSet", spec=_TEMPLATE | {"serviceName": "s", "volumeClaimTemplates": []}),
    *_object_samples("batch/v1", "cronjobs", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": _POD | {"restartPolicy": "Never"}}}}}),
    *_object_samples("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", spec=_HPA),
    *_object_samples("coordination.k8s.io/v1", "leases", "Lease", spec={"renewTime": "2030-01-01T00:00:00.000001Z", "leaseDurationSeconds": 9}),
    *_object_samples("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", spec={"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}),
    *_object_samples("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", spec={"podSelector": {}, "ingress": [{"ports": [{"port": 1, "endPort": 2}]}]}),
)  # fmt: skip
