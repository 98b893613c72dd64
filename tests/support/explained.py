"""Facts for tests of explanations: those of a few objects, of which all is known."""

from datetime import UTC, datetime

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.groups import GroupResource
from mockube.explanations.facts import (
    REFUSED,
    Allowed,
    ContentsOf,
    DependentsOf,
    DryRun,
    EventsOf,
    Facts,
    LogOf,
    LossOf,
    ObjectNamed,
    WatchersOf,
    WritesOf,
)

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
GROUPS = {
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "Job": "batch",
    "CronJob": "batch",
    "StorageClass": "storage.k8s.io",
    "HorizontalPodAutoscaler": "autoscaling",
    "EndpointSlice": "discovery.k8s.io",
    "Ingress": "networking.k8s.io",
    "IngressClass": "networking.k8s.io",
    "Gateway": "gateway.networking.k8s.io",
    "GatewayClass": "gateway.networking.k8s.io",
    "HTTPRoute": "gateway.networking.k8s.io",
    "PodDisruptionBudget": "policy",
    "CustomResourceDefinition": "apiextensions.k8s.io",
    "RoleBinding": "rbac.authorization.k8s.io",
    "ClusterRoleBinding": "rbac.authorization.k8s.io",
    "Role": "rbac.authorization.k8s.io",
    "ClusterRole": "rbac.authorization.k8s.io",
    "NetworkPolicy": "networking.k8s.io",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io",
}


def resource_of(tree):
    kind = tree["kind"]
    plural = (
        f"{kind.lower()[:-1]}ies"
        if kind.endswith("y") and not kind.endswith("ay")
        else f"{kind.lower()}{'es' if kind.endswith('ss') else 's'}"
    )
    return GroupResource(GROUPS.get(kind, ""), plural)


class _Answers(dict):
    """The answers to all questions about some objects."""

    def __init__(self, objects, logs, refused, *, watchers, allowed, writes, loss):
        super().__init__()
        self._writes, self._loss = writes, loss
        self._watchers, self._allowed = watchers, allowed
        self._objects, self._logs, self._refused = objects, logs, refused

    def __missing__(self, question):
        self[question] = self._answer(question)
        return self[question]

    def _answer(self, question):
        match question:
            case LogOf(container=container):
                return self._logs.get(container, "").splitlines()
            case WritesOf(name=name, path=path):
                return self._writes.get((name, path), ())
            case DryRun():
                return ""
            case Allowed():
                return self._allowed
            case LossOf():
                return self._loss
            case DependentsOf(namespace, _) | ContentsOf(namespace):
                inside = [each for each in self._objects if meta.namespace(each) == namespace]
                return [each for each in inside if _is_in(question, each)]
        resource = GroupResource("", "events") if isinstance(question, EventsOf) else question.resource
        return REFUSED if str(resource) in self._refused else self._of_resource(resource, question)

    def _of_resource(self, resource, question):
        found = [each for each in self._objects if resource_of(each) == resource]
        match question:
            case EventsOf(uid=uid):
                return [each for each in found if each["involvedObject"]["uid"] == uid]
            case ObjectNamed(_, namespace, name):
                names = {(meta.namespace(each), meta.name(each)): each for each in found}
                return names.get((namespace, name))
            case WatchersOf():
                return self._watchers
        namespace = question.namespace
        return [each for each in found if not namespace or meta.namespace(each) == namespace]


def _is_in(question, tree):
    if isinstance(question, ContentsOf):
        return tree["kind"] != "Event"
    return any(each["uid"] == question.uid for each in meta.owner_references(tree))


def facts_of(*objects, logs=None, refused=(), watchers=(), allowed=False, writes=(), loss=None):
    """Return the facts of objects; the user may not read the `refused` resources, and the server accepts each request."""
    answers = _Answers(
        objects, logs or {}, refused, watchers=watchers, allowed=allowed, writes=dict(writes), loss=loss
    )
    return Facts(NOW, FeatureGates(), answers)


def thing(kind, name="web", *, api_version="v1", namespace="default", metadata=(), **fields):
    head = {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**head, **dict(metadata)}, **fields}


def pod_of(name="web", *, status=(), metadata=(), container=(), **spec):
    """Return a pod with the container `c` on node `a`, unless the spec has other ones."""
    containers = [{"name": "c", "image": "nginx", **dict(container)}]
    spec = {"nodeName": "a", "containers": containers, "restartPolicy": "Always", **spec}
    return thing("Pod", name, metadata=metadata, spec=spec, status={"phase": "Pending", **dict(status)})


def condition(name, status, reason="", message=""):
    return {"type": name, "status": status, "reason": reason, "message": message}


def with_state(state, **fields):
    """Return the status of a pod whose container `c` has a state."""
    container = {"name": "c", "ready": False, "restartCount": 0, "state": state, **fields}
    return {"containerStatuses": [container], "conditions": [condition("Initialized", "True")]}


def event(about, reason, message, time="2026-01-31T11:59:00Z", *, container=""):
    """Return an Event about an object, or about a container of a pod."""
    field = {"fieldPath": f"spec.containers{{{container}}}"} if container else {}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{reason}-{time}", "namespace": "default"},
        "involvedObject": {"uid": about["metadata"]["uid"], **field},
        "reason": reason,
        "message": message,
        "lastTimestamp": time,
    }


def node_of(name="a", *, cpu="4", taints=(), labels=(), ready="True", **spec):
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "9"}
    status = {"allocatable": allocatable, "conditions": [condition("Ready", ready, "KubeletNotReady")]}
    metadata = {"labels": {"kubernetes.io/hostname": name, **dict(labels)}}
    return thing(
        "Node", name, namespace="", metadata=metadata, spec={"taints": [*taints], **spec}, status=status
    )
