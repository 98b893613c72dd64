"""The volumes whose files outlive their pods, those of claims and of nodes, and the pods whose disks are small. Pure."""

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.volumes import is_claim
from mockube.container_runtime.disk_usage import EPHEMERAL_STORAGE


def is_lasting(volume: ReadOnlyTree) -> bool:
    """Return whether the contents of a volume may outlive its pod."""
    return "hostPath" in volume or is_claim(volume)


def has_small_disk(pod: ReadOnlyTree) -> bool:
    """Return whether a pod has an emptyDir with a size or in memory, or limits what it may use of its node's disk."""
    spec = pod["spec"]
    for volume in spec.get("volumes") or ():
        source = volume.get("emptyDir") or {}
        if source.get("sizeLimit") or source.get("medium") == "Memory":
            return True
    for container in spec["containers"]:
        resources = container.get("resources")
        if resources and EPHEMERAL_STORAGE in (resources.get("limits") or {}):
            return True
    return False
