"""Containers that may do all that the host's root may: refused where --allow-privileged is false."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.resources.templates import TEMPLATES, template
from apiserver.validation.pods.surroundings import containers_of
from apiserver.validation.rules import Tree

SUBRESOURCES: Final = frozenset({"", "ephemeralcontainers", "resize"})
"""What a pod's containers are looked at for."""
_FORBIDDEN: Final = "disallowed by cluster policy"


def check_unprivileged(kind: GroupKind, tree: Tree) -> Iterator[FieldError]:
    way = TEMPLATES.get(kind)
    if way is None:
        return
    spec, path = template((*way, "spec"), tree), ROOT.child(*way, "spec")
    of_host = []
    for container, at in containers_of(spec, path):
        if (container.get("securityContext") or {}).get("privileged"):
            yield errors.forbidden(at.child("securityContext", "privileged"), _FORBIDDEN)
        of_host.append(_is_host_process(container, spec))
    if any(of_host):
        yield errors.forbidden(path, f"hostProcess containers are {_FORBIDDEN}")


def _is_host_process(container: Tree, spec: Tree) -> bool:
    """A container that does not say so itself is what its pod is."""
    for of in (container, spec):
        flag = ((of.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if flag is not None:
            return bool(flag)
    return False
