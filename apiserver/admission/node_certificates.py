"""What NodeRestriction allows nodes to request as PodCertificateRequests: certificates of their own pods."""

from typing import Final

from mockube.apimachinery import meta, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import NODES, PODS, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.apiserver.authz.chain import Attributes, Authorization
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

CERTIFICATE_REQUESTS: Final = ("certificates.k8s.io", "podcertificaterequests")
_ACCOUNTS: Final = GroupResource("", "serviceaccounts")


def existing_pod(registry: Registry, namespace: str, name: str) -> ReadOnlyTree:
    return existing_object(registry, PODS, namespace, name)


def existing_object(registry: Registry, resource: GroupResource, namespace: str, name: str) -> ReadOnlyTree:
    """Return the cached object, or raise NotFound with the name of the resource as a lister has it."""
    stored = registry.find_cached(resource, namespace, name) if name else None
    if stored is None:
        raise status.not_found(GroupResource(resource.group, resource.resource.removesuffix("s")), name)
    return stored.tree()


def certificate_request_problem(registry: Registry, attributes: AdmissionAttributes, node: str) -> str:
    if attributes.operation is not Operation.CREATE:
        return f"unexpected operation {attributes.operation.value}"
    if attributes.subresource:
        return f"unexpected subresource {attributes.subresource}"
    assert attributes.object is not None
    spec = attributes.object.get("spec") or {}
    if spec.get("nodeName", "") != node:
        named = quote(spec.get("nodeName", ""))
        return f"PodCertificateRequest.Spec.NodeName={named}, which is not the requesting node {quote(node)}"
    pod_key = quote(f"{attributes.namespace}/{spec.get('podName', '')}")
    stored = _subject(registry, NODES, "", spec.get("nodeName", ""), "node")
    _require_uid(pod_key, "names node", spec.get("nodeUID", ""), stored, "inconsistent with the running node")
    pod = _subject(registry, PODS, attributes.namespace, spec.get("podName", ""), "pod")
    if meta.uid(pod) != spec.get("podUID", ""):
        requested = quote(spec.get("podUID", ""))
        differs = f"which differs from running pod {quote(meta.uid(pod))}"
        raise status.Unknown(
            f"PodCertificateRequest for pod {pod_key} contains pod UID ({requested}) {differs}"
        )
    if pod["spec"].get("nodeName") != node:
        return f"pod {pod_key} is not running on node {quote(node)} named in the PodCertificateRequest"
    if ANNOTATION_MIRROR_POD in meta.annotations(pod):
        return f"pod {pod_key} is a mirror pod"
    name, own_name = spec.get("serviceAccountName", ""), pod["spec"].get("serviceAccountName") or ""
    if name != own_name:
        names = (
            f"contains serviceAccountName ({quote(name)}) that differs from running pod ({quote(own_name)})"
        )
        return f"PodCertificateRequest for pod {pod_key} {names}"
    account = _subject(registry, _ACCOUNTS, attributes.namespace, name, "service account")
    differs = "which differs from the running service account"
    _require_uid(pod_key, "names service account", spec.get("serviceAccountUID", ""), account, differs)
    return ""


def _subject(
    registry: Registry, resource: GroupResource, namespace: str, name: str, kind: str
) -> ReadOnlyTree:
    """Return an object that a PodCertificateRequest names. Upstream's cache may be behind, so clients can retry."""
    try:
        return existing_object(registry, resource, namespace, name)
    except status.NotFound as error:
        key = quote(f"{namespace}/{name}" if namespace else name)
        problem = f"while retrieving {kind} {key} named in the PodCertificateRequest: {error.message}"
        raise status.Unknown(problem) from error


def _require_uid(pod_key: str, names: str, uid: str, tree: ReadOnlyTree, differs: str) -> None:
    if meta.uid(tree) != uid:
        problem = f"{names} UID {quote(uid)}, {differs} ({quote(meta.uid(tree))})"
        raise status.Unknown(f"PodCertificateRequest for pod {pod_key} {problem}")


def signer_problem(authorization: Authorization, registry: Registry, attributes: AdmissionAttributes) -> str:
    """Return the error unless a volume of the pod uses the signer, or the node is authorized to request its certificates."""
    assert attributes.object is not None
    spec = attributes.object["spec"]
    signer = spec.get("signerName") or ""
    pod = existing_pod(registry, attributes.namespace, spec["podName"])
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if (source.get("podCertificate") or {}).get("signerName") == signer:
                return ""
    access = Attributes(
        user=attributes.context.user,
        verb="request-serviceaccounts-podcertificate-signer",
        group=CERTIFICATE_REQUESTS[0],
        version=attributes.context.resource.version,
        # RBAC has no resources with slashes.
        resource=signer.replace("/", ":"),
        namespace=attributes.namespace,
        name=spec.get("serviceAccountName") or "",
    )
    if authorization.is_allowed(access):
        return ""
    key = quote(f"{attributes.namespace}/{spec['podName']}")
    return f"pod {key} does not mount a podCertificate projected volume for signer {quote(signer)}"
