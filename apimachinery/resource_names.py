"""The names of the resources that pods request: which are Kubernetes' own, and which are extended resources."""

from typing import Final

from . import meta, names
from .tree import ReadOnlyTree

REQUESTS: Final = "requests."
"""The prefix of requests in a quota."""
HUGE_PAGES: Final = "hugepages-"
ATTACHABLE_VOLUMES: Final = "attachable-volumes-"
IMPLICIT_DEVICES: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the extended resource that every device class provides; the name of the class follows."""
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that the scheduler created for a pod's extended resources."""


def is_native(name: str) -> bool:
    """Return whether a resource is one of Kubernetes: its name has no domain, or that of Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one; with the prefix of a quota, its name must still be valid."""
    if is_native(name) or name.startswith(REQUESTS):
        return False
    return not names.check_label_key(f"{REQUESTS}{name}")


def is_scalar(name: str) -> bool:
    """Return whether the scheduler counts a resource only for pods that request it, as extended resources and huge pages."""
    return "/" in name or name.startswith((HUGE_PAGES, ATTACHABLE_VOLUMES))


def is_extended_resource_claim(claim: ReadOnlyTree) -> bool:
    """Return whether the scheduler created a claim for a pod's extended resources."""
    return meta.annotations(claim).get(EXTENDED_RESOURCE_CLAIM) == "true"
