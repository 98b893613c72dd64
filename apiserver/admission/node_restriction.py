"""NodeRestriction: the user of a node may only write its own Node, its own pods, and the objects that belong to them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from cryptography.x509.oid import NameOID

from mockube.apimachinery import errors, meta, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import NODES, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.apiserver.authz.chain import Attributes, Authorization
from mockube.apiserver.authz.node.references import of_pod
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target
from mockube.apiserver.user import NODE, node_name

from . import node_certificates
from .certificates import REQUEST, request_of
from .plugin import POD, Plugin, forbidden, wait_for_earlier_writes

_CREATE, _UPDATE, _DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE
_LEASES: Final = "kube-node-lease"
_SIGNERS: Final = frozenset({"kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"})
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_OWN_LABELS: Final = frozenset(
    {
        *("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
        *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
        *("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        *("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"),
    }
)
_OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_STATUS_OF_OTHERS: Final = "can only update pod status for pods with spec.nodeName set to itself"
_CLAIM_STATUS_FIELDS: Final = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")


class NodeRestriction(Plugin):
    operations = frozenset({_CREATE, _UPDATE, _DELETE})

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def handles(self, operation: Operation, target: Target) -> bool:
        return super().handles(operation, target) and _check_of(target) is not None

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        node = node_name(attributes.context.user)
        if node is None:
            return
        if not node:
            problem = f"could not determine node from user {quote(attributes.context.user.name)}"
            raise forbidden(attributes, problem)
        check = _check_of(attributes.target)
        assert check is not None
        await wait_for_earlier_writes(registry, attributes)
        problem = check(registry, attributes, node)
        if not problem and attributes.target == ("", "serviceaccounts", "token"):
            problem = _audience_problem(self._authorization, registry, attributes)
        if not problem and attributes.target[:2] == node_certificates.CERTIFICATE_REQUESTS:
            problem = node_certificates.signer_problem(self._authorization, registry, attributes)
        if problem:
            raise forbidden(attributes, problem)


Check = Callable[[Registry, AdmissionAttributes, str], str]
"""Returns the error of a write by a node; "" if it is allowed."""


def _pod(registry: Registry, attributes: AdmissionAttributes, node: str) -> str:
    if attributes.operation is _DELETE:
        pod = node_certificates.existing_pod(registry, attributes.namespace, attributes.name)
        runs_here = pod["spec"].get("nodeName") == node
        return (
            "" if runs_here else f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
        )
    if attributes.operation is _UPDATE:
        operation = quote(attributes.operation.value)
        return f"unexpected operation {operation}, node {quote(node)} can only create and delete mirror pods"
    assert attributes.object is not None
    return next(_new_pod_problems(registry, attributes.object, node), "")


def _new_pod_problems(registry: Registry, pod: Tree, node: str) -> Iterator[str]:
    name = quote(node)
    if ANNOTATION_MIRROR_POD not in meta.annotations(pod):
        yield f"pod does not have {quote(ANNOTATION_MIRROR_POD)} annotation, node {name} can only create mirror pods"
    if pod["spec"].get("nodeName") != node:
        yield f"node {name} can only create pods with spec.nodeName set to itself"
    owners = pod["metadata"].get("ownerReferences") or ()
    if len(owners) > 1:
        yield f"node {name} can only create pods with a single owner reference set to itself"
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        yield f"node {name} can only create pods with an owner reference set to itself"
    if not owner.get("controller"):
        yield f"node {name} can only create pods with a controller owner reference set to itself"
    if owner.get("blockOwnerDeletion"):
        yield f"node {name} must not set blockOwnerDeletion on an owner reference"
    stored = registry.find_cached(NODES, "", node)
    if stored is None:
        raise status.not_found(GroupResource("", "node"), node)
    uid = meta.uid(stored.tree())
    if owner.get("uid") != uid:
        yield f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}"
    if resource := _first_reference(pod):
        yield f"node {name} can not create pods that reference {resource}"


def _first_reference(pod: Tree) -> str:
    """Return the first API resource that a pod refers to; "" if there is none."""
    metadata = {"namespace": "x", "name": "x"}
    references = [reference[0] for reference in of_pod({"metadata": metadata, "spec": pod["spec"]})]
    resources = [resource for resource in references if resource != "pods"]
    for volume in pod["spec"].get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        if "csi" in volume or any("serviceAccountToken" in source for source in sources):
            resources.append("csidrivers (via CSI volumes)" if "csi" in volume else "serviceaccounts")
    return resources[0] if resources else ""


def _pod_status(_: Registry, attributes: AdmissionAttributes, node: str) -> str:
    new, old = attributes.object, attributes.old
    if attributes.operation is not _UPDATE or new is None or old is None:
        return f"unexpected operation {quote(attributes.operation.value)}"
    if old["spec"].get("nodeName") != node:
        return f"node {quote(node)} {_STATUS_OF_OTHERS}"
    if meta.labels(old) != meta.labels(new):
        return f"node {quote(node)} cannot update labels through pod status"
    before, after = (tree.get("status") or {} for tree in (old, new))
    if _claims(before) != _claims(after):
        return f"node {quote(node)} cannot update resource claim statues"
    if before.get("extendedResourceClaimStatus") != after.get("extendedResourceClaimStatus"):
        return f"node {quote(node)} cannot update extended resource claim status"
    if before.get("nodeAllocatableResourceClaimStatuses") != after.get(
        "nodeAllocatableResourceClaimStatuses"
    ):
        return f"node {quote(node)} cannot update node allocatable resource claim statuses"
    return ""


def _claims(status_: ReadOnlyTree) -> list[tuple[Any, Any]]:
    claims = status_.get("resourceClaimStatuses") or ()
    return [(entry.get("name"), entry.get("resourceClaimName")) for entry in claims]


def _pod_eviction(registry: Registry, attributes: AdmissionAttributes, node: str) -> str:
    if attributes.operation is not _CREATE:
        return f"unexpected operation {attributes.operation.value}"
    pod = node_certificates.existing_pod(registry, attributes.namespace, attributes.name)
    runs_here = pod["spec"].get("nodeName") == node
    return "" if runs_here else f"node {node} can only evict pods with spec.nodeName set to itself"


def _other_pod(_: Registry, attributes: AdmissionAttributes, _node: str) -> str:
    subresource = quote(attributes.subresource)
    return f"unexpected pod subresource {subresource}, only 'status' and 'eviction' are allowed"


def _node(_: Registry, attributes: AdmissionAttributes, node: str) -> str:
    name = attributes.name or meta.name(attributes.object or {"metadata": {}})
    if name != node:
        return f"node {quote(node)} is not allowed to modify node {quote(name)}"
    new, old = attributes.object, attributes.old
    if attributes.operation is _CREATE and new is not None:
        if new.get("spec", {}).get("configSource") is not None:
            return f"node {quote(node)} is not allowed to create pods with a non-nil configSource"
        forbidden_labels = _forbidden_labels(meta.labels(new), {})
        if forbidden_labels:
            return f"node {quote(node)} is not allowed to set the following labels: {', '.join(forbidden_labels)}"
    if attributes.operation is _UPDATE and new is not None and old is not None:
        return _node_update(node, new, old)
    return ""


def _node_update(node: str, new: Tree, old: Tree) -> str:
    after, before = new.get("spec") or {}, old.get("spec") or {}
    source = after.get("configSource")
    if source is not None and source != before.get("configSource"):
        return f"node {quote(node)} is not allowed to update configSource to a new non-nil configSource"
    if (after.get("taints") or []) != (before.get("taints") or []):
        return f"node {quote(node)} is not allowed to modify taints"
    owners = [tree["metadata"].get("ownerReferences") or [] for tree in (new, old)]
    if owners[0] != owners[1]:
        return f"node {quote(node)} is not allowed to modify ownerReferences"
    forbidden_labels = _forbidden_labels(meta.labels(new), meta.labels(old))
    return f"is not allowed to modify labels: {', '.join(forbidden_labels)}" if forbidden_labels else ""


def _forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    changed = {
        name for name in {*new, *old} if new.get(name) != old.get(name) or (name in new) != (name in old)
    }
    return sorted(name for name in changed if _is_forbidden(name))


def _is_forbidden(label: str) -> bool:
    domain = label.partition("/")[0] if "/" in label else ""
    if _is_within(domain, (_RESTRICTED,)):
        return True
    if label in _OWN_LABELS or _is_within(domain, _OWN_DOMAINS):
        return False
    return _is_within(domain, ("kubernetes.io", "k8s.io"))


def _is_within(domain: str, parents: Iterable[str]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


def _claim(_: Registry, attributes: AdmissionAttributes, node: str) -> str:
    if attributes.subresource != "status":
        return "may only update PVC status"
    new, old = attributes.object, attributes.old
    if attributes.operation is not _UPDATE or new is None or old is None:
        return f"unexpected operation {quote(attributes.operation.value)}"
    if _protected_claim_fields(new) == _protected_claim_fields(old):
        return ""
    allowed = "fields other than status.quantity and status.conditions"
    return f"node {quote(node)} is not allowed to update {allowed}"


def _protected_claim_fields(claim: Tree) -> Tree:
    metadata = {
        name: value
        for name, value in claim["metadata"].items()
        if name not in ("resourceVersion", "managedFields")
    }
    rest = {
        name: value for name, value in (claim.get("status") or {}).items() if name not in _CLAIM_STATUS_FIELDS
    }
    return {**claim, "metadata": metadata, "status": rest}


def _token(registry: Registry, attributes: AdmissionAttributes, node: str) -> str:
    spec = (attributes.object or {}).get("spec") or {}
    bound = spec.get("boundObjectRef") or {}
    if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
        return "node requested token not bound to a pod"
    if not bound.get("uid"):
        return "node requested token with a pod binding without a uid"
    pod = node_certificates.existing_pod(registry, attributes.namespace, bound["name"])
    if meta.uid(pod) != bound["uid"]:
        problem = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record."
        return f"{problem} The object might have been deleted and then recreated"
    if pod["spec"].get("nodeName") != node:
        return "node requested token bound to a pod scheduled on a different node"
    return ""


def _audience_problem(
    authorization: Authorization, registry: Registry, attributes: AdmissionAttributes
) -> str:
    """Return the error unless a volume of the pod uses the token's audience, or the node is authorized to request it."""
    spec = (attributes.object or {}).get("spec") or {}
    audiences = spec.get("audiences") or [""]
    if len(audiences) > 1:
        return "node may only request 0 or 1 audiences"
    (audience,) = audiences
    pod = node_certificates.existing_pod(registry, attributes.namespace, spec["boundObjectRef"]["name"])
    missing: list[str] = []
    for volume in pod["spec"].get("volumes") or ():
        try:
            if audience in _audiences(registry, pod, volume):
                return ""
        except status.NotFound as error:
            missing.append(error.message)
    if missing:
        return f"error validating audience {quote(audience)}: {errors.aggregate(missing)}"
    user = attributes.context.user
    access = Attributes(
        user=user,
        verb="request-serviceaccounts-token-audience",
        version="v1",
        resource=audience,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    if authorization.is_allowed(access):
        return ""
    if not registry.is_before("1.37"):
        return f"{user.name} is not authorized to request tokens for audience {quote(audience)}"
    refusal = f"{user.name} is not authorized to request tokens for this audience"
    return f"audience {quote(audience)} not found in pod spec volume, {refusal}"


def _audiences(registry: Registry, pod: ReadOnlyTree, volume: ReadOnlyTree) -> Iterator[str]:
    """Yield the audiences of a volume's tokens; raise NotFound if an object that names them does not exist."""
    for source in (volume.get("projected") or {}).get("sources") or ():
        if "serviceAccountToken" in source:
            yield source["serviceAccountToken"].get("audience") or ""
    if driver := _driver(registry, pod, volume):
        csi_driver = node_certificates.existing_object(
            registry, GroupResource("storage.k8s.io", "csidrivers"), "", driver
        )
        for request in csi_driver["spec"].get("tokenRequests") or ():
            yield request.get("audience") or ""


def _driver(registry: Registry, pod: ReadOnlyTree, volume: ReadOnlyTree) -> str:
    """Return the CSI driver of a volume, which is in the pod, in a claim or in a claim that is created for it."""
    if "csi" in volume:
        return str(volume["csi"].get("driver") or "")
    name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    if "ephemeral" in volume:
        name = f"{meta.name(pod)}-{volume['name']}"
    if not name:
        return ""
    claim = node_certificates.existing_object(
        registry, GroupResource("", "persistentvolumeclaims"), meta.namespace(pod), name
    )
    bound = claim["spec"].get("volumeName") or ""
    persistent_volume = node_certificates.existing_object(
        registry, GroupResource("", "persistentvolumes"), "", bound
    )
    return str((persistent_volume["spec"].get("csi") or {}).get("driver") or "")


def _lease(_: Registry, attributes: AdmissionAttributes, node: str) -> str:
    if attributes.namespace != _LEASES:
        return f"can only access leases in the {quote(_LEASES)} system namespace"
    return _name_problem(attributes, node, "node lease")


def _csi_node(_: Registry, attributes: AdmissionAttributes, node: str) -> str:
    problem = _name_problem(attributes, node, "CSINode")
    if not problem and attributes.subresource == "status":
        return "CSIVolumeHealth feature gate is disabled"
    return problem


def _name_problem(attributes: AdmissionAttributes, node: str, object_kind: str) -> str:
    is_new = attributes.operation is _CREATE and attributes.object is not None
    name = meta.name(attributes.object or {"metadata": {}}) if is_new else attributes.name
    return "" if name == node else f"can only access {object_kind} with the same name as the requesting node"


def _slice(_: Registry, attributes: AdmissionAttributes, node: str) -> str:
    tree = attributes.object if attributes.operation is _CREATE else attributes.old
    if attributes.operation is _UPDATE or tree is None or tree["spec"].get("nodeName") == node:
        return ""
    verb = "create" if attributes.operation is _CREATE else "delete"
    return f"can only {verb} ResourceSlice with the same NodeName as the requesting node"


def _signing_request(_: Registry, attributes: AdmissionAttributes, node: str) -> str:
    csr = attributes.object
    if attributes.operation is not _CREATE or csr is None or csr["spec"].get("signerName") not in _SIGNERS:
        return ""
    try:
        request = request_of(csr)
    except ValueError as error:
        return f"unable to parse csr: {error}"
    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    common_name = f"{NODE}{node}"
    # The last common name counts, as in Go.
    return (
        ""
        if names and names[-1].value == common_name
        else f"can only create a node CSR with CN={common_name}"
    )


_CHECKS: Final[Mapping[tuple[str, str], Check]] = {
    ("", "nodes"): _node,
    ("", "persistentvolumeclaims"): _claim,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("resource.k8s.io", "resourceslices"): _slice,
    REQUEST[:2]: _signing_request,
    node_certificates.CERTIFICATE_REQUESTS: node_certificates.certificate_request_problem,
}
"""The checks of resources, including all their subresources."""
_SUBRESOURCE_CHECKS: Final[Mapping[Target, Check]] = {
    POD: _pod,
    ("", "pods", "status"): _pod_status,
    ("", "pods", "eviction"): _pod_eviction,
    ("", "serviceaccounts", "token"): _token,
}


def _check_of(target: Target) -> Check | None:
    if target in _SUBRESOURCE_CHECKS:
        return _SUBRESOURCE_CHECKS[target]
    return _other_pod if target[:2] == POD[:2] else _CHECKS.get(target[:2])
