"""The types of checks and their violations, and functions for the messages."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from mockube.apimachinery.tree import ReadOnlyTree

Annotations: TypeAlias = Mapping[str, str]


class Violation(NamedTuple):
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


CheckPod: TypeAlias = Callable[[Annotations, ReadOnlyTree], Violation | None]
"""Returns the violation of a pod, by its annotations and its spec."""


class Check(NamedTuple):
    """A check of a level: its functions by the minor version since which they apply, and the check that it overrides."""

    id: str
    level: str
    versions: Sequence[tuple[int, CheckPod]]
    overrides: str = ""


def containers(spec: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def security_context(holder: ReadOnlyTree) -> ReadOnlyTree:
    """Return the security context of a pod or a container."""
    return holder.get("securityContext") or {}


def is_windows(spec: ReadOnlyTree) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def has_user_namespace(spec: ReadOnlyTree) -> bool:
    return spec.get("hostUsers") is False


def quote_names(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def plural_of(singular: str, count: int, plural: str = "") -> str:
    return singular if count == 1 else plural or f"{singular}s"


def name_list(singular: str, names: Collection[str]) -> str:
    """Return, for example, `containers "a", "b"`."""
    return f"{plural_of(singular, len(names))} {quote_names(names)}"


def container_names(spec: ReadOnlyTree, is_bad: Callable[[ReadOnlyTree], Any]) -> list[str]:
    return [container["name"] for container in containers(spec) if is_bad(container)]


def setters(spec: ReadOnlyTree, is_bad: Callable[[ReadOnlyTree], Any]) -> list[str]:
    """Return the pod and the containers whose security context is bad: the pod first."""
    setter_names = ["pod"] if is_bad(security_context(spec)) else []
    if names := container_names(spec, lambda container: is_bad(security_context(container))):
        setter_names.append(name_list("container", names))
    return setter_names
