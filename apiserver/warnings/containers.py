"""Containers of pods: amounts, variables that hide each other, and annotations in whose place there are fields."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from apimachinery.gotext import quote
from apimachinery.paths import Path
from apiserver.resources.strategies import apparmor
from apiserver.validation.rules import Tree
from apiserver.warnings.amounts import of_amounts

_BYTES: Final = ("memory", "ephemeral-storage")
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
NO_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_APPARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def of_container(container: Tree, path: Path) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in _BYTES:
        for field in ("limits", "requests"):
            if name in resources.get(field, ()):
                yield from of_amounts(resources[field], path.child("resources", field), (name,))
    env = container.get("env")
    if env and len(env) > 1:
        yield from _hidden(env, path.child("env"))


def _hidden(env: list[Tree], path: Path) -> Iterator[str]:
    """Variables of one name, unless the later one is made of the earlier one."""
    seen = set()
    for index, variable in enumerate(env):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and (
            variable.get("valueFrom") is not None or value == reference or reference not in value
        ):
            at = path.index(index)
            yield f"{at}: hides previous definition of {quote(name)}, which may be dropped when using apply"
        seen.add(name)


def of_annotations(
    container: Tree, annotations: Mapping[str, Any], path: Path, spec: Tree, *, in_pod: bool
) -> Iterator[str]:
    """Of annotations that name a container; a pod's own for AppArmor are told of where they become fields."""
    name, context = container.get("name", ""), container.get("securityContext") or {}
    seccomp, for_apparmor = _SECCOMP + name, apparmor.PREFIX + name
    if seccomp in annotations and "seccompProfile" not in context:
        yield f"{path.key(seccomp)}: {NO_SECCOMP}"
    if in_pod or for_apparmor not in annotations or "appArmorProfile" in context:
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    if of_pod is None or of_pod != apparmor.profile_of(annotations[for_apparmor]):
        yield f"{path.key(for_apparmor)}: {_NO_APPARMOR}"
