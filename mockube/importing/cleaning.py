"""What of an object another cluster's server or controllers have filled in, and a new one must not be sent with. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    LABEL_ENDPOINT_SLICE_MANAGED_BY,
    LABEL_JOB_CONTROLLER_UID,
    LABEL_JOB_CONTROLLER_UID_LEGACY,
    LABEL_JOB_NAME,
    LABEL_JOB_NAME_LEGACY,
    NAMESPACE_DEFAULT,
    NAMESPACE_SYSTEM,
)
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.kubelet.node_objects import MARK

POD: Final = GroupKind("", "Pod")
NODE: Final = GroupKind("", "Node")
NAMESPACE: Final = GroupKind("", "Namespace")
DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
SERVICE: Final = GroupKind("", "Service")

_METADATA: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Owners have other uids here, and are set when these are known."""

_DROPPED: Final[Mapping[GroupKind, Sequence[Sequence[str]]]] = {
    POD: (("spec", "ephemeralContainers"),),
    NAMESPACE: (("spec",),),
    GroupKind("", "PersistentVolume"): (
        ("spec", "claimRef", "uid"),
        ("spec", "claimRef", "resourceVersion"),
    ),
    GroupKind("", "PersistentVolumeClaim"): (
        ("metadata", "annotations", "pv.kubernetes.io/bind-completed"),
        ("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"),
    ),
}
"""A volume without the uid of its claim, and a claim that is not marked as bound, are bound to each other again."""

_ASSIGNED: Final[Mapping[GroupKind, Sequence[Sequence[str]]]] = {
    SERVICE: (("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "healthCheckNodePort")),
}
_JOB: Final = GroupKind("batch", "Job")
_JOB_LABELS: Final = (
    LABEL_JOB_CONTROLLER_UID,
    LABEL_JOB_CONTROLLER_UID_LEGACY,
    LABEL_JOB_NAME,
    LABEL_JOB_NAME_LEGACY,
)
STATUS_IS_OURS: Final = frozenset({NAMESPACE, DEFINITION, GroupKind("apiregistration.k8s.io", "APIService")})
"""Their status is about the server that served them."""


def kind_of(tree: ReadOnlyTree) -> GroupKind:
    return GroupKind(GroupVersion.parse(meta.api_version(tree)).group, meta.kind(tree))


def clean_object(tree: ReadOnlyTree, nodes: Collection[str]) -> dict[str, Any]:
    """Return the object to create; `nodes` are those that the cluster will have."""
    kind = kind_of(tree)
    clean = {
        **tree,
        "metadata": {name: value for name, value in tree["metadata"].items() if name not in _METADATA},
    }
    for path in _DROPPED.get(kind, ()):
        clean = _remove_path(clean, path)
    further = _FURTHER.get(kind)
    return clean if further is None else further(clean, nodes)


def without_assigned(tree: ReadOnlyTree) -> dict[str, Any] | None:
    """Return the same without the fields that a server assigns again; None for what has no such field."""
    paths = _ASSIGNED.get(kind_of(tree))
    if paths is None or not spec_of(tree):
        return None
    free = {**tree}
    for path in paths:
        free = _remove_path(free, path)
    ports = spec_of(free).get("ports")
    if not isinstance(ports, list):
        return free
    free_ports = [_remove_path(port, ("nodePort",)) if isinstance(port, dict) else port for port in ports]
    return meta.with_value(free, ("spec", "ports"), free_ports)


def spec_of(tree: ReadOnlyTree) -> Mapping[str, Any]:
    """Return nothing if the value has another type: the server will report it."""
    spec = tree.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def status_of(tree: ReadOnlyTree, nodes: Collection[str]) -> Mapping[str, Any] | None:
    """The message about it; None if there is none."""
    kind = kind_of(tree)
    if kind in STATUS_IS_OURS or (kind == POD and not _has_path(tree, nodes)):
        return None
    return tree.get("status") or None


def _pod(tree: dict[str, Any], nodes: Collection[str]) -> dict[str, Any]:
    """A pod whose node does not exist is scheduled again: bound to it, it would be garbage."""
    return tree if _has_path(tree, nodes) else _remove_path(tree, ("spec", "nodeName"))


def _has_path(pod: ReadOnlyTree, nodes: Collection[str]) -> bool:
    node = spec_of(pod).get("nodeName")
    return not node or node in nodes


def _node(tree: dict[str, Any], _: Collection[str]) -> dict[str, Any]:
    """No kubelet runs it here, so it is simulated."""
    return meta.with_annotations(tree, dict([MARK]))


def _job(tree: dict[str, Any], _: Collection[str]) -> dict[str, Any]:
    """The server generates the selector from the uid again."""
    if spec_of(tree).get("manualSelector"):
        return tree
    for label in _JOB_LABELS:
        tree = _remove_path(
            _remove_path(tree, ("spec", "template", "metadata", "labels", label)),
            ("metadata", "labels", label),
        )
    return _remove_path(tree, ("spec", "selector"))


_FURTHER: Final[Mapping[GroupKind, Callable[[dict[str, Any], Collection[str]], dict[str, Any]]]] = {
    POD: _pod,
    NODE: _node,
    _JOB: _job,
}


def _remove_path(tree: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """A copy that lacks what lies at the end of the path."""
    field, *rest = path
    if field not in tree:
        return tree
    if not rest:
        return {name: value for name, value in tree.items() if name != field}
    below = tree[field]
    return {**tree, field: _remove_path(below, rest)} if isinstance(below, dict) else tree


def implied_objects(trees: Sequence[ReadOnlyTree]) -> Iterator[dict[str, Any]]:
    """To be made where they are not there."""
    there = {(kind_of(tree).kind, meta.namespace(tree), meta.name(tree)) for tree in trees}
    for namespace in sorted({meta.namespace(tree) for tree in trees} - {""}):
        if (NAMESPACE.kind, "", namespace) not in there:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    accounts = {(meta.namespace(tree), _account(tree)) for tree in trees if kind_of(tree) == POD}
    for namespace, name in sorted(accounts):
        if ("ServiceAccount", namespace, name) not in there:
            metadata = {"name": name, "namespace": namespace}
            yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _account(pod: ReadOnlyTree) -> str:
    spec = spec_of(pod)
    return str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")


_LEASE: Final = GroupKind("coordination.k8s.io", "Lease")
_SLICE: Final = GroupKind("discovery.k8s.io", "EndpointSlice")
_CONFIG_MAP: Final = GroupKind("", "ConfigMap")
_SERVER: Final = {Key(NAMESPACE_DEFAULT, "kubernetes")}
_OF_THE_SERVER: Final[Mapping[GroupKind, Collection[Key]]] = {
    GroupKind("", "Service"): _SERVER,
    GroupKind("", "Endpoints"): _SERVER,
    _SLICE: _SERVER,
    _CONFIG_MAP: {Key(NAMESPACE_SYSTEM, "extension-apiserver-authentication")},
}
_SLICE_CONTROLLERS: Final = frozenset(
    {"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"}
)
"""Controllers find slices by the uids of Services, and would create others beside them."""
_ROOT_CA: Final = "kube-root-ca.crt"


def reason_to_skip(tree: ReadOnlyTree) -> str:
    """Return why the object is not created; "" if it is."""
    kind = kind_of(tree)
    if meta.is_deleting(tree):
        return "it was being deleted"
    if Key.of(tree) in _OF_THE_SERVER.get(kind, ()):
        return "the server has its own"
    if kind == _LEASE and meta.namespace(tree) == NAMESPACE_SYSTEM:
        return "it belongs to a process that runs elsewhere"
    is_slice = kind == _SLICE and meta.labels(tree).get(LABEL_ENDPOINT_SLICE_MANAGED_BY) in _SLICE_CONTROLLERS
    if is_slice or (kind == _CONFIG_MAP and meta.name(tree) == _ROOT_CA):
        return "a controller creates it"
    return ""
