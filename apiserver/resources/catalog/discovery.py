"""The rows of discovery.k8s.io."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="discovery.k8s.io",
    resources=(
        Resource(group="discovery.k8s.io", version="v1", name="endpointslices", kind="EndpointSlice"),
    ),
)
