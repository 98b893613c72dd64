"""What of a pod's spec the rules of its parts depend on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apimachinery.paths import Path
from apiserver.validation.pods.leniency import Leniency
from apiserver.validation.rules import Tree

WINDOWS, LINUX = "windows", "linux"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    spec: Tree
    metadata: Tree | None
    """Of a real pod; None in a template."""
    volumes: Mapping[str, Tree]
    """Those that nothing is wrong with."""
    claims: frozenset[str]
    """Names of claims to other resources than volumes."""
    leniency: Leniency

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


def os_of(spec: Tree) -> str:
    return (spec.get("os") or {}).get("name") or ""


def containers_of(spec: Tree, path: Path) -> Iterator[tuple[Tree, Path]]:
    """Every container and where it is, in the order in which upstream visits them."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, path.child(field).index(index)
