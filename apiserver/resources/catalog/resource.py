"""The rows of resource.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="resource.k8s.io",
    resources=(
        Resource(
            group="resource.k8s.io", version="v1", name="deviceclasses", kind="DeviceClass", namespaced=False
        ),
        Resource(
            group="resource.k8s.io",
            version="v1",
            name="resourceclaims",
            kind="ResourceClaim",
            subresources=(STATUS,),
        ),
        Resource(
            group="resource.k8s.io", version="v1", name="resourceclaimtemplates", kind="ResourceClaimTemplate"
        ),
        Resource(
            group="resource.k8s.io",
            version="v1",
            name="resourceslices",
            kind="ResourceSlice",
            namespaced=False,
            selectable=("spec.nodeName", "spec.driver"),
        ),
    ),
)
