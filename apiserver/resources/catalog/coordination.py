"""The rows of coordination.k8s.io."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="coordination.k8s.io",
    resources=(Resource(group="coordination.k8s.io", version="v1", name="leases", kind="Lease"),),
)
