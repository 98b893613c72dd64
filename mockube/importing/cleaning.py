"""Remove what another cluster's server and controllers set in an object, before it is created again. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.kubelet.node_objects import SIMULATED_NODE_ANNOTATION

POD: Final = GroupKind("", "Pod")
NODE: Final = GroupKind("", "Node")
NAMESPACE: Final = GroupKind("", "Namespace")
DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
SERVICE: Final = GroupKind("", "Service")

SERVER_METADATA: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""The fields of metadata that a server sets."""
_DROPPED_METADATA: Final = (*SERVER_METADATA, "ownerReferences")
"""Owner references are set later, when the uids of the new owners are known."""

_DROPPED_FIELDS: Final[Mapping[GroupKind, Sequence[Sequence[str]]]] = {
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
"""Without the claim's uid on the volume and the bind annotations on the claim, a controller binds them again."""

_ASSIGNED_FIELDS: Final[Mapping[GroupKind, Sequence[Sequence[str]]]] = {
    SERVICE: (("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "healthCheckNodePort")),
}
_JOB: Final = GroupKind("batch", "Job")
_JOB_LABELS: Final = (
    wellknown.LABEL_JOB_CONTROLLER_UID,
    wellknown.LABEL_JOB_CONTROLLER_UID_LEGACY,
    wellknown.LABEL_JOB_NAME,
    wellknown.LABEL_JOB_NAME_LEGACY,
)
SERVER_STATUS_KINDS: Final = frozenset(
    {NAMESPACE, DEFINITION, GroupKind("apiregistration.k8s.io", "APIService")}
)
"""Their status is about the server that served them."""


def kind_of(tree: ReadOnlyTree) -> GroupKind:
    return GroupKind(GroupVersion.parse(meta.api_version(tree)).group, meta.kind(tree))


def clean_object(tree: ReadOnlyTree, nodes: Collection[str]) -> dict[str, Any]:
    """Return the object to create; `nodes` are the names of the nodes that the cluster will have."""
    kind = kind_of(tree)
    clean = {
        **tree,
        "metadata": {
            name: value for name, value in tree["metadata"].items() if name not in _DROPPED_METADATA
        },
    }
    for path in _DROPPED_FIELDS.get(kind, ()):
        clean = _remove_path(clean, path)
    clean_kind = _CLEANERS.get(kind)
    return clean if clean_kind is None else clean_kind(clean, nodes)


def without_assigned_fields(tree: ReadOnlyTree) -> dict[str, Any] | None:
    """Return the object without addresses and ports that a server assigns; None if its kind has no such fields."""
    paths = _ASSIGNED_FIELDS.get(kind_of(tree))
    if paths is None or not spec_of(tree):
        return None
    result = {**tree}
    for path in paths:
        result = _remove_path(result, path)
    ports = spec_of(result).get("ports")
    if not isinstance(ports, list):
        return result
    ports_without_node_ports = [
        _remove_path(port, ("nodePort",)) if isinstance(port, dict) else port for port in ports
    ]
    return meta.with_value(result, ("spec", "ports"), ports_without_node_ports)


def spec_of(tree: ReadOnlyTree) -> Mapping[str, Any]:
    """Return the object's spec; an empty one if it is not a map, which the server will report."""
    spec = tree.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def status_of(tree: ReadOnlyTree, nodes: Collection[str]) -> Mapping[str, Any] | None:
    """Return the status to write; None if there is none, or if it describes the other server or an absent node."""
    kind = kind_of(tree)
    if kind in SERVER_STATUS_KINDS or (kind == POD and not _node_exists(tree, nodes)):
        return None
    return tree.get("status") or None


def _clean_pod(tree: dict[str, Any], nodes: Collection[str]) -> dict[str, Any]:
    """Unbind a pod from a node that does not exist, so that it is scheduled again and not garbage-collected."""
    return tree if _node_exists(tree, nodes) else _remove_path(tree, ("spec", "nodeName"))


def _node_exists(pod: ReadOnlyTree, nodes: Collection[str]) -> bool:
    """Return whether the pod's node will exist; True for a pod without a node."""
    node = spec_of(pod).get("nodeName")
    return not node or node in nodes


def _clean_node(tree: dict[str, Any], _: Collection[str]) -> dict[str, Any]:
    """Mark a node as simulated, because no kubelet runs it in the new cluster."""
    return meta.with_annotations(tree, dict([SIMULATED_NODE_ANNOTATION]))


def _clean_job(tree: dict[str, Any], _: Collection[str]) -> dict[str, Any]:
    """Remove a Job's generated selector and labels: the server generates them from the new uid."""
    if spec_of(tree).get("manualSelector"):
        return tree
    for label in _JOB_LABELS:
        tree = _remove_path(
            _remove_path(tree, ("spec", "template", "metadata", "labels", label)),
            ("metadata", "labels", label),
        )
    return _remove_path(tree, ("spec", "selector"))


_CLEANERS: Final[Mapping[GroupKind, Callable[[dict[str, Any], Collection[str]], dict[str, Any]]]] = {
    POD: _clean_pod,
    NODE: _clean_node,
    _JOB: _clean_job,
}


def _remove_path(tree: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a copy without the field at the path."""
    field, *rest = path
    if field not in tree:
        return tree
    if not rest:
        return {name: value for name, value in tree.items() if name != field}
    child = tree[field]
    return {**tree, field: _remove_path(child, rest)} if isinstance(child, dict) else tree


def implied_objects(trees: Sequence[ReadOnlyTree]) -> Iterator[dict[str, Any]]:
    """Yield the Namespaces and ServiceAccounts that the objects need and that are not among them."""
    present = {(kind_of(tree).kind, meta.namespace(tree), meta.name(tree)) for tree in trees}
    for namespace in sorted({meta.namespace(tree) for tree in trees} - {""}):
        if (NAMESPACE.kind, "", namespace) not in present:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    service_accounts = {
        (meta.namespace(tree), _service_account_name(tree)) for tree in trees if kind_of(tree) == POD
    }
    for namespace, name in sorted(service_accounts):
        if ("ServiceAccount", namespace, name) not in present:
            metadata = {"name": name, "namespace": namespace}
            yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _service_account_name(pod: ReadOnlyTree) -> str:
    spec = spec_of(pod)
    return str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")


_LEASE: Final = GroupKind("coordination.k8s.io", "Lease")
_SLICE: Final = GroupKind("discovery.k8s.io", "EndpointSlice")
_CONFIG_MAP: Final = GroupKind("", "ConfigMap")
_KUBERNETES_SERVICE: Final = {Key(wellknown.NAMESPACE_DEFAULT, "kubernetes")}
_SERVER_OBJECTS: Final[Mapping[GroupKind, Collection[Key]]] = {
    GroupKind("", "Service"): _KUBERNETES_SERVICE,
    GroupKind("", "Endpoints"): _KUBERNETES_SERVICE,
    _SLICE: _KUBERNETES_SERVICE,
    _CONFIG_MAP: {Key(wellknown.NAMESPACE_SYSTEM, "extension-apiserver-authentication")},
}
_SLICE_CONTROLLERS: Final = frozenset(
    {"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"}
)
"""Controllers find EndpointSlices by the uid of their Service, and would create others beside the imported ones."""
_ROOT_CA: Final = "kube-root-ca.crt"


def reason_to_skip(tree: ReadOnlyTree) -> str:
    """Return why the object is not created; "" if it is."""
    kind = kind_of(tree)
    if meta.is_deleting(tree):
        return "it was being deleted"
    if Key.of(tree) in _SERVER_OBJECTS.get(kind, ()):
        return "the server has its own"
    if kind == _LEASE and meta.namespace(tree) == wellknown.NAMESPACE_SYSTEM:
        return "it belongs to a process that runs elsewhere"
    is_slice = (
        kind == _SLICE
        and meta.labels(tree).get(wellknown.LABEL_ENDPOINT_SLICE_MANAGED_BY) in _SLICE_CONTROLLERS
    )
    if is_slice or (kind == _CONFIG_MAP and meta.name(tree) == _ROOT_CA):
        return "a controller creates it"
    return ""
