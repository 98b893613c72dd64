"""The access reviews, which return what a user may do and are not stored."""

from typing import Final

from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Kind

LOCAL_SUBJECT_ACCESS_REVIEW: Final = Kind(
    resource=Resource(
        group="authorization.k8s.io",
        version="v1",
        name="localsubjectaccessreviews",
        kind="LocalSubjectAccessReview",
        verbs=("create",),
    ),
)

SELF_SUBJECT_ACCESS_REVIEW: Final = Kind(
    resource=Resource(
        group="authorization.k8s.io",
        version="v1",
        name="selfsubjectaccessreviews",
        kind="SelfSubjectAccessReview",
        namespaced=False,
        verbs=("create",),
    ),
)

SELF_SUBJECT_RULES_REVIEW: Final = Kind(
    resource=Resource(
        group="authorization.k8s.io",
        version="v1",
        name="selfsubjectrulesreviews",
        kind="SelfSubjectRulesReview",
        namespaced=False,
        verbs=("create",),
    ),
)

SUBJECT_ACCESS_REVIEW: Final = Kind(
    resource=Resource(
        group="authorization.k8s.io",
        version="v1",
        name="subjectaccessreviews",
        kind="SubjectAccessReview",
        namespaced=False,
        verbs=("create",),
    ),
)
