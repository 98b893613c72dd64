"""The context in which the parts of a pod are validated: the pod, and the validation options of the old pod."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree


class PodValidationOptions(Struct, frozen=True, kw_only=True):
    """The rules that an updated pod may violate, because the old pod violates them already."""

    deletion_cost: bool = False
    """The deletion cost is not a number."""
    huge_pages: bool = False
    """An amount of huge pages is not a whole number of pages."""
    selector_values: bool = False
    """A selector of pod affinity has values that no label can have."""
    node_affinity_values: bool = False
    """A selector of node affinity has values that no label can have."""
    spread_selectors: bool = False
    """A selector of a topology spread constraint has values that no label can have."""
    spread_label_keys: bool = False
    """The matchLabelKeys of a topology spread constraint repeat keys of its selector."""
    token_paths: bool = False
    """The path of a service account token leads out of its volume."""
    host_sysctls: bool = False
    """A sysctl belongs to a namespace that the pod shares with the host."""
    selinux_policy: bool = False
    """The pod has a seLinuxChangePolicy."""
    comparisons: bool = False
    """A toleration compares taints as numbers."""
    host_network_users: bool = False
    """The pod is in the host network and has its own user namespace."""
    volume_devices: bool = False
    """The pod has volume devices and its own user namespace."""
    restarting_resizes: bool = False
    """A resize restarts an init container that is not a sidecar."""
    images_without_reference: bool = False
    """An image volume has no reference."""
    privileged_capability: bool = False
    """A container has the capability CAP_SYS_ADMIN and does not allow privilege escalation."""


STRICT = PodValidationOptions()

WINDOWS, LINUX = "windows", "linux"


class PodContext(Struct, frozen=True, kw_only=True, dict=True):
    spec: ReadOnlyTree
    metadata: ReadOnlyTree | None
    """The metadata of a pod; None in a template."""
    volumes: Mapping[str, ReadOnlyTree]
    """The valid volumes by name."""
    claims: frozenset[str]
    """The names of the resource claims."""
    options: PodValidationOptions

    @cached_property
    def undeclared_claim(self) -> str:
        """The detail of the errors of claims that are not declared: one long text for all of them."""
        names = f": {', '.join(sorted(self.claims))}" if self.claims else " which is empty"
        return f"must be one of the names in pod.spec.resourceClaims{names}"

    @property
    def in_pod(self) -> bool:
        return self.metadata is not None

    @property
    def grace_period(self) -> int | None:
        return self.spec.get("terminationGracePeriodSeconds")

    @property
    def restart_policy(self) -> str:
        return self.spec.get("restartPolicy") or ""

    @property
    def host_users(self) -> bool:
        return self.spec.get("hostUsers") is not False

    @property
    def host_network(self) -> bool:
        return bool(self.spec.get("hostNetwork"))

    @property
    def os(self) -> str:
        return os_of(self.spec)


def os_of(spec: ReadOnlyTree) -> str:
    return (spec.get("os") or {}).get("name") or ""


def containers_of(spec: ReadOnlyTree, path: Path) -> Iterator[tuple[ReadOnlyTree, Path]]:
    """Yield every container and its path, in upstream's order."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, path.child(field).index(index)
