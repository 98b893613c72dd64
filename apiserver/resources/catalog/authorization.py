"""The rows of authorization.k8s.io."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="authorization.k8s.io",
    resources=(
        Resource(
            group="authorization.k8s.io",
            version="v1",
            name="localsubjectaccessreviews",
            kind="LocalSubjectAccessReview",
            verbs=("create",),
        ),
        Resource(
            group="authorization.k8s.io",
            version="v1",
            name="selfsubjectaccessreviews",
            kind="SelfSubjectAccessReview",
            namespaced=False,
            verbs=("create",),
        ),
        Resource(
            group="authorization.k8s.io",
            version="v1",
            name="selfsubjectrulesreviews",
            kind="SelfSubjectRulesReview",
            namespaced=False,
            verbs=("create",),
        ),
        Resource(
            group="authorization.k8s.io",
            version="v1",
            name="subjectaccessreviews",
            kind="SubjectAccessReview",
            namespaced=False,
            verbs=("create",),
        ),
    ),
)
