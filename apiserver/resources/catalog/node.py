"""The rows of node.k8s.io."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="node.k8s.io",
    resources=(
        Resource(
            group="node.k8s.io", version="v1", name="runtimeclasses", kind="RuntimeClass", namespaced=False
        ),
    ),
)
