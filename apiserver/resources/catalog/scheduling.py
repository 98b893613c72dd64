"""The rows of scheduling.k8s.io."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="scheduling.k8s.io",
    resources=(
        Resource(
            group="scheduling.k8s.io",
            version="v1",
            name="priorityclasses",
            kind="PriorityClass",
            namespaced=False,
            short_names=("pc",),
        ),
    ),
)
