"""The rows of apiextensions.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="apiextensions.k8s.io",
    resources=(
        Resource(
            group="apiextensions.k8s.io",
            version="v1",
            name="customresourcedefinitions",
            stored_at="apiextensions.k8s.io/customresourcedefinitions",
            kind="CustomResourceDefinition",
            namespaced=False,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources=(STATUS,),
        ),
    ),
)
