"""How kinds and resources are named: with their API group, and with or without a version."""

from typing import NamedTuple


class GroupResource(NamedTuple):
    """A resource whatever its version. Prints as `deployments.apps`, or `pods` for the core group."""

    group: str
    resource: str

    def __str__(self) -> str:
        return _join_with_dot(self.resource, self.group)


NO_RESOURCE = GroupResource("", "")


class GroupKind(NamedTuple):
    """A kind whatever its version. Prints as `Deployment.apps`, or `Pod` for the core group."""

    group: str
    kind: str

    def __str__(self) -> str:
        return _join_with_dot(self.kind, self.group)


class GroupVersion(NamedTuple):
    """What `apiVersion` holds: `apps/v1`, or `v1` for the core group."""

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
