"""The rows of apiregistration.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="apiregistration.k8s.io",
    resources=(
        Resource(
            group="apiregistration.k8s.io",
            version="v1",
            name="apiservices",
            stored_at="apiregistration.k8s.io/apiservices",
            kind="APIService",
            namespaced=False,
            categories=("api-extensions",),
            subresources=(STATUS,),
        ),
    ),
)
