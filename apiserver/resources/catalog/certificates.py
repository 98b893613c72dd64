"""The rows of certificates.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource, Subresource

GROUP = Group(
    name="certificates.k8s.io",
    resources=(
        Resource(
            group="certificates.k8s.io",
            version="v1",
            name="certificatesigningrequests",
            kind="CertificateSigningRequest",
            namespaced=False,
            short_names=("csr",),
            selectable=("spec.signerName",),
            subresources=(
                Subresource(name="approval"),
                STATUS,
            ),
        ),
    ),
)
