"""TokenReview and SelfSubjectReview, which return a user and are not stored."""

from typing import Final

from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Kind

SELF_SUBJECT_REVIEW: Final = Kind(
    resource=Resource(
        group="authentication.k8s.io",
        version="v1",
        name="selfsubjectreviews",
        kind="SelfSubjectReview",
        namespaced=False,
        verbs=("create",),
    ),
)

TOKEN_REVIEW: Final = Kind(
    resource=Resource(
        group="authentication.k8s.io",
        version="v1",
        name="tokenreviews",
        kind="TokenReview",
        namespaced=False,
        verbs=("create",),
    ),
)
