"""Mirror pods, by which a kubelet shows its static pods."""

from . import meta
from .tree import ReadOnlyTree
from .wellknown import ANNOTATION_MIRROR_POD


def kubelet_uid(pod: ReadOnlyTree) -> str:
    """Return the uid by which a kubelet knows a pod: that of a static pod is the hash of its manifest, whatever its mirror pod has."""
    return meta.annotations(pod).get(ANNOTATION_MIRROR_POD) or meta.uid(pod)
