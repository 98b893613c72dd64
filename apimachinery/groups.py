"""Names of kinds and resources with their API group, and API versions (GroupResource, GroupKind, GroupVersion)."""

from typing import NamedTuple


class GroupResource(NamedTuple):
    """A resource in any version. Its text is `deployments.apps`, or `pods` in the core group."""

    group: str
    resource: str

    def __str__(self) -> str:
        return _join_with_dot(self.resource, self.group)


NO_RESOURCE = GroupResource("", "")

NAMESPACES = GroupResource("", "namespaces")
NODES = GroupResource("", "nodes")
PODS = GroupResource("", "pods")
SECRETS = GroupResource("", "secrets")
SERVICES = GroupResource("", "services")
LEASES = GroupResource("coordination.k8s.io", "leases")

CONTROL = "control.mockube.dev"
"""The group of mockube's own resources, which control a running server."""


class GroupKind(NamedTuple):
    """A kind in any version. Its text is `Deployment.apps`, or `Pod` in the core group."""

    group: str
    kind: str

    def __str__(self) -> str:
        return _join_with_dot(self.kind, self.group)


class GroupVersion(NamedTuple):
    """The value of `apiVersion`: `apps/v1`, or `v1` in the core group."""

    group: str
    version: str

    @classmethod
    def parse(cls, api_version: str) -> "GroupVersion":
        group, slash, version = api_version.rpartition("/")
        if "/" in group:
            raise ValueError(f"unexpected GroupVersion string: {api_version}")
        return cls(group, version if slash else api_version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def _join_with_dot(name: str, group: str) -> str:
    return f"{name}.{group}" if group else name
