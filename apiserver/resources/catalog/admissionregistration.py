"""The rows of admissionregistration.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="admissionregistration.k8s.io",
    resources=(
        Resource(
            group="admissionregistration.k8s.io",
            version="v1",
            name="mutatingadmissionpolicies",
            kind="MutatingAdmissionPolicy",
            namespaced=False,
            categories=("api-extensions",),
        ),
        Resource(
            group="admissionregistration.k8s.io",
            version="v1",
            name="mutatingadmissionpolicybindings",
            kind="MutatingAdmissionPolicyBinding",
            namespaced=False,
            categories=("api-extensions",),
        ),
        Resource(
            group="admissionregistration.k8s.io",
            version="v1",
            name="mutatingwebhookconfigurations",
            kind="MutatingWebhookConfiguration",
            namespaced=False,
            categories=("api-extensions",),
        ),
        Resource(
            group="admissionregistration.k8s.io",
            version="v1",
            name="validatingadmissionpolicies",
            kind="ValidatingAdmissionPolicy",
            namespaced=False,
            categories=("api-extensions",),
            subresources=(STATUS,),
        ),
        Resource(
            group="admissionregistration.k8s.io",
            version="v1",
            name="validatingadmissionpolicybindings",
            kind="ValidatingAdmissionPolicyBinding",
            namespaced=False,
            categories=("api-extensions",),
        ),
        Resource(
            group="admissionregistration.k8s.io",
            version="v1",
            name="validatingwebhookconfigurations",
            kind="ValidatingWebhookConfiguration",
            namespaced=False,
            categories=("api-extensions",),
        ),
    ),
)
