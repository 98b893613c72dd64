"""A change of a PodCertificateRequest's status needs the permission to sign for its signer, and a new certificate.

Upstream checks this in the storage of the kind, after its validation. So it cannot be disabled.
"""

from typing import Final

from mockube.apimachinery import errors, meta, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.certificates.pod_certificate_request import status_errors
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .certificates import GROUP, may_use_signer
from .plugin import UPDATE, Plugin

_SIGNER: Final = ROOT.child("spec", "signerName")


class PodCertificateSigning(Plugin):
    operations = UPDATE
    targets = frozenset({(GROUP, "podcertificaterequests", "status")})

    async def authorize(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        new, old = attributes.object, attributes.old
        assert new is not None
        assert old is not None
        kind = attributes.resource.group_kind
        if field_errors := status_errors(new, old, registry.clock.now()):
            raise status.invalid(kind, meta.name(new), field_errors)
        if _status(new) == _status(old):
            return
        signer = old["spec"]["signerName"]
        if not may_use_signer(registry, attributes, "sign", signer):
            user = quote(attributes.context.user.name)
            problem = f'User {user} is not permitted to "sign" for signer {quote(signer)}'
            raise status.invalid(kind, meta.name(new), [errors.forbidden(_SIGNER, problem)])


def _status(request: Tree) -> Tree:
    return {name: value for name, value in (request.get("status") or {}).items() if value}
