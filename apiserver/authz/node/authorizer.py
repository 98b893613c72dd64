"""Authorize the requests of node users: a node may read the objects that its pods refer to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery.gotext import quote
from mockube.apiserver.authz.chain import NO_OPINION, Attributes, Decision, DecisionAndReason, UserRules
from mockube.apiserver.authz.rbac.rules import RuleSet
from mockube.apiserver.fields import FieldSelectorError
from mockube.apiserver.fields import parse as parse_field_selector
from mockube.apiserver.user import User, node_name

from .graph import NodeGraph
from .references import CERTIFICATE_REQUEST

_ALLOWED: Final[DecisionAndReason] = (Decision.ALLOW, "")
_LEASES: Final = "kube-node-lease"
_OWN_OBJECT: Final = ("get", "create", "update", "patch", "delete")
_SLICE_VERBS: Final = "get, watch, list, create, update, patch, delete, deletecollection"
_POD_VERBS: Final = {
    "": ("create", "delete"),
    "status": ("update", "patch"),
    "eviction": ("create",),
}
"""The verbs that admission limits to the pods of the node."""


def _no_opinion(reason: str) -> DecisionAndReason:
    return Decision.NO_OPINION, reason


class NodeAuthorizer:
    """The Node authorizer. `rules` apply to all nodes."""

    def __init__(self, graph: NodeGraph, rules: Sequence[Mapping[str, Any]]) -> None:
        self.graph = graph
        self._rules = RuleSet(rules)
        self._authorizers: Mapping[tuple[str, str], Callable[[str, Attributes], DecisionAndReason]] = {
            ("", "secrets"): self._read,
            ("", "configmaps"): self._read,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get,
            ("resource.k8s.io", "resourceclaims"): self._get,
            ("storage.k8s.io", "volumeattachments"): self._get,
            ("", "serviceaccounts"): self._account,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("", "nodes"): _node,
            ("", "pods"): self._pod,
            ("certificates.k8s.io", CERTIFICATE_REQUEST): self._certificate_request,
        }

    def decide(self, attributes: Attributes) -> DecisionAndReason:
        node = node_name(attributes.user)
        if node is None:
            return NO_OPINION
        if not node:
            return _no_opinion(f"unknown node for user {quote(attributes.user.name)}")
        authorize = self._authorizers.get((attributes.group, attributes.resource))
        if authorize is not None:
            return authorize(node, attributes)
        return _ALLOWED if self._has_rule(attributes) else NO_OPINION

    def rules(self, user: User, _namespace: str) -> UserRules:
        if node_name(user) is None:
            return UserRules()
        return UserRules(is_incomplete=True, error="node authorizer does not support user rule resolution")

    def _has_rule(self, attributes: Attributes) -> bool:
        if not attributes.is_resource:
            return self._rules.allows_path(attributes.verb, attributes.path)
        names = self._rules.names(
            attributes.verb, attributes.group, attributes.resource, attributes.subresource
        )
        return names is not None and (not names or attributes.name in names)

    def _authorize_related(self, node: str, attributes: Attributes) -> DecisionAndReason:
        if not attributes.name:
            return _no_opinion("No Object name found")
        reference = attributes.resource, attributes.namespace, attributes.name
        if self.graph.has_path(node, reference):
            return _ALLOWED
        return _no_opinion(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, attributes: Attributes) -> DecisionAndReason:
        if attributes.verb != "get":
            return _no_opinion("can only get individual resources of this type")
        if attributes.subresource:
            return _no_opinion("cannot get subresource")
        return self._authorize_related(node, attributes)

    def _read(self, node: str, attributes: Attributes) -> DecisionAndReason:
        if attributes.verb not in ("get", "list", "watch"):
            return _no_opinion("can only read resources of this type")
        if attributes.subresource:
            return _no_opinion("cannot read subresource")
        if not attributes.namespace:
            return _no_opinion("can only read namespaced object of this type")
        return self._authorize_related(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> DecisionAndReason:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return _no_opinion("can only get/update/patch this type")
        return self._authorize_related(node, attributes)

    def _account(self, node: str, attributes: Attributes) -> DecisionAndReason:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _no_opinion("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no_opinion("can only create token subresource of serviceaccount")
        return self._authorize_related(node, attributes)

    def _slice(self, node: str, attributes: Attributes) -> DecisionAndReason:
        if attributes.subresource:
            return _no_opinion("cannot authorize ResourceSlice subresources")
        verb = attributes.verb
        if verb in ("get", "update", "patch", "delete"):
            return self._authorize_related(node, attributes)
        if verb in ("watch", "list", "deletecollection"):
            if _selects(attributes, "spec.nodeName", node):
                return _ALLOWED
            return _no_opinion(
                "can only list/watch/deletecollection resourceslices with nodeName field selector"
            )
        if verb == "create":
            return _ALLOWED
        return _no_opinion(f"only the following verbs are allowed for a ResourceSlice: {_SLICE_VERBS}")

    def _certificate_request(self, node: str, attributes: Attributes) -> DecisionAndReason:
        if CERTIFICATE_REQUEST not in self.graph.resources:
            return NO_OPINION
        if attributes.subresource:
            return _no_opinion("nodes may not access the status subresource of PodCertificateRequests")
        verb = attributes.verb
        if verb == "create":
            return _ALLOWED
        if verb == "get":
            return self._authorize_related(node, attributes)
        if verb not in ("list", "watch"):
            return _no_opinion(f"nodes may not {verb} podcertificaterequests")
        if _selects(attributes, "spec.nodeName", node):
            return _ALLOWED
        return _no_opinion("can only list/watch podcertificaterequests with nodeName field selector")

    def _pod(self, node: str, attributes: Attributes) -> DecisionAndReason:
        verb = attributes.verb
        if not attributes.subresource:
            if verb == "get":
                return self._get(node, attributes)
            if verb in ("list", "watch"):
                if _selects(attributes, "spec.nodeName", node):
                    return _ALLOWED
                if attributes.name:
                    return self._authorize_related(node, attributes)
                return _no_opinion("can only list/watch pods with spec.nodeName field selector")
        return _ALLOWED if verb in _POD_VERBS.get(attributes.subresource, ()) else NO_OPINION


def _lease(node: str, attributes: Attributes) -> DecisionAndReason:
    if attributes.verb not in _OWN_OBJECT:
        return _no_opinion("can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != _LEASES:
        return _no_opinion(f"can only access leases in the {quote(_LEASES)} system namespace")
    if attributes.verb != "create" and attributes.name != node:
        return _no_opinion("can only access node lease with the same name as the requesting node")
    return _ALLOWED


def _csi_node(node: str, attributes: Attributes) -> DecisionAndReason:
    if attributes.subresource == "status":
        return _no_opinion("CSINode status access requires CSIVolumeHealth feature")
    if attributes.subresource:
        return _no_opinion("cannot authorize CSINode subresources")
    if attributes.verb not in _OWN_OBJECT:
        return _no_opinion("can only get, create, update, patch, or delete a CSINode")
    if attributes.verb != "create" and attributes.name != node:
        return _no_opinion("can only access CSINode with the same name as the requesting node")
    return _ALLOWED


def _node(node: str, attributes: Attributes) -> DecisionAndReason:
    verb, name = attributes.verb, attributes.name
    if attributes.subresource == "status":
        return _ALLOWED if verb in ("update", "patch") else NO_OPINION
    if attributes.subresource:
        return NO_OPINION
    if verb in ("create", "update", "patch"):
        return _ALLOWED
    if verb not in ("get", "list", "watch"):
        return NO_OPINION
    if name == node:
        return _ALLOWED
    target = f"'{name}'" if name else "all nodes"
    return _no_opinion(f"node '{node}' cannot read {target}, only its own Node object")


def _selects(attributes: Attributes, field: str, value: str) -> bool:
    """Return whether a list is limited to objects whose field has a value."""
    try:
        selector = parse_field_selector(attributes.field_selector)
    except FieldSelectorError:
        return False
    return any(term.equal and (term.field, term.value) == (field, value) for term in selector.terms)
