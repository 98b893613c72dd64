"""Which objects are better not made, though they were printed: somebody here has them already, or makes them. Pure."""

from collections.abc import Collection, Mapping
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    LABEL_ENDPOINT_SLICE_MANAGED_BY,
    NAMESPACE_DEFAULT,
    NAMESPACE_SYSTEM,
)
from mockube.controller_manager.client.resources import Key
from mockube.importing.cleaning import kind_of

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
"""They know slices by the uids of Services, and would make others beside."""
_ROOT_CA: Final = "kube-root-ca.crt"


def needless(tree: ReadOnlyTree) -> str:
    """Why it is not made; "" if nothing speaks against it."""
    kind = kind_of(tree)
    if meta.is_deleting(tree):
        return "it was being deleted"
    if Key.of(tree) in _OF_THE_SERVER.get(kind, ()):
        return "the server has its own"
    if kind == _LEASE and meta.namespace(tree) == NAMESPACE_SYSTEM:
        return "it belongs to a process that runs elsewhere"
    is_slice = kind == _SLICE and meta.labels(tree).get(LABEL_ENDPOINT_SLICE_MANAGED_BY) in _SLICE_CONTROLLERS
    if is_slice or (kind == _CONFIG_MAP and meta.name(tree) == _ROOT_CA):
        return "a controller makes it anew"
    return ""
