"""The rows of rbac.authorization.k8s.io."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="rbac.authorization.k8s.io",
    resources=(
        Resource(
            group="rbac.authorization.k8s.io",
            version="v1",
            name="clusterrolebindings",
            kind="ClusterRoleBinding",
            namespaced=False,
        ),
        Resource(
            group="rbac.authorization.k8s.io",
            version="v1",
            name="clusterroles",
            kind="ClusterRole",
            namespaced=False,
        ),
        Resource(group="rbac.authorization.k8s.io", version="v1", name="rolebindings", kind="RoleBinding"),
        Resource(group="rbac.authorization.k8s.io", version="v1", name="roles", kind="Role"),
    ),
)
