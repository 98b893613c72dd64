"""CertificateApproval, CertificateSigning, CertificateSubjectRestriction and ClusterTrustBundleAttest.

A user who approves or signs certificates of a signer, or attests its trust anchors, needs a permission for this signer,
or for all of its domain, besides the permission to write the object.
"""

from cryptography import x509
from cryptography.x509.oid import NameOID

from mockube.apimachinery import gotext
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes
from mockube.apiserver.kinds.certificates.validation import parse_request
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes

from . import plugin
from .plugin import Plugin

GROUP = "certificates.k8s.io"
REQUEST, APPROVAL, STATUS = (
    (GROUP, "certificatesigningrequests", name) for name in ("", "approval", "status")
)
BUNDLE = (GROUP, "clustertrustbundles", "")
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
MASTERS = "system:masters"


def may_use_signer(registry: Registry, attributes: AdmissionAttributes, verb: str, signer: str) -> bool:
    """Return whether the user has a permission for a signer, or for all of its domain."""
    domain = signer.partition("/")[0]
    questions = (
        Attributes(
            user=attributes.context.user, verb=verb, group=GROUP, version="*", resource="signers", name=name
        )
        for name in (signer, f"{domain}/*")
    )
    return any(registry.authorization.is_allowed(question) for question in questions)


def _check(registry: Registry, attributes: AdmissionAttributes, verb: str, signer: str, refusal: str) -> None:
    if not may_use_signer(registry, attributes, verb, signer):
        raise plugin.forbidden(attributes, f"{refusal} {gotext.quote(signer)}")


def _signer(tree: Tree) -> str:
    signer: str = tree["spec"].get("signerName", "")
    return signer


def request_of(csr: Tree) -> x509.CertificateSigningRequest:
    """Return the request in a CertificateSigningRequest, or raise ValueError."""
    return parse_request(csr["spec"].get("request", ""))


class CertificateApproval(Plugin):
    operations = plugin.UPDATE
    targets = frozenset({APPROVAL})

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        assert attributes.old is not None
        refusal = "user not permitted to approve requests with signerName"
        _check(registry, attributes, "approve", _signer(attributes.old), refusal)


class CertificateSigning(Plugin):
    operations = plugin.UPDATE
    targets = frozenset({STATUS})

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        new, old = attributes.object, attributes.old
        assert new is not None
        assert old is not None
        before, after = old.get("status", {}), new.get("status", {})
        if any(before.get(field) != after.get(field) for field in ("certificate", "conditions")):
            _check(
                registry,
                attributes,
                "sign",
                _signer(old),
                "user not permitted to sign requests with signerName",
            )


class CertificateSubjectRestriction(Plugin):
    """Refuses a CSR for a member of system:masters."""

    targets = frozenset({REQUEST})

    async def validate(self, _registry: Registry, attributes: AdmissionAttributes) -> None:
        csr = attributes.object
        assert csr is not None
        if _signer(csr) != CLIENT_SIGNER:
            return
        try:
            request = request_of(csr)
        except ValueError as error:
            raise plugin.forbidden(attributes, f"failed to parse CSR: {error}") from error
        organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if any(organization.value == MASTERS for organization in organizations):
            raise plugin.forbidden(
                attributes, f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            )


class ClusterTrustBundleAttest(Plugin):
    operations = plugin.WRITE
    targets = frozenset({BUNDLE})

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        new, old = attributes.object, attributes.old
        assert new is not None
        signer = _signer(new)
        if not signer or (old is not None and plugin.changes_only_collector_fields(new, old)):
            return
        _check(registry, attributes, "attest", signer, "user not permitted to attest for signerName")
