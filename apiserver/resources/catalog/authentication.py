"""The rows of authentication.k8s.io."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="authentication.k8s.io",
    resources=(
        Resource(
            group="authentication.k8s.io",
            version="v1",
            name="selfsubjectreviews",
            kind="SelfSubjectReview",
            namespaced=False,
            verbs=("create",),
        ),
        Resource(
            group="authentication.k8s.io",
            version="v1",
            name="tokenreviews",
            kind="TokenReview",
            namespaced=False,
            verbs=("create",),
        ),
    ),
)
