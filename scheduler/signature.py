"""What of a pod decides where it fits and how it counts there. Pods of one signature are alike to the scheduler. Pure.

Pods of one ReplicaSet have the same signature, whatever their names. Upstream's word, too: KEP-5598.
"""

import sys
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

_POD_FIELDS: Final = (
    "affinity",
    "hostNetwork",
    "hostUsers",
    "nodeSelector",
    "overhead",
    "resources",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER_FIELDS: Final = ("image", "ports", "resources", "restartPolicy", "restartPolicyRules")


def signature_of(view: PodView, *computed: object) -> str:
    """Return the signature of a pod with what was computed of it: its requests and priority.

    It leaves out the fields that differ between the pods of a ReplicaSet or StatefulSet: names, among them those of claims and of the
    token's volume, and the node.
    """
    spec = view.object["spec"]
    fields = (
        view.key.namespace,
        view.labels,
        computed,
        [spec.get(name) for name in _POD_FIELDS],
        [_container(one) for name in ("containers", "initContainers") for one in spec.get(name) or ()],
        [volume["image"] for volume in spec.get("volumes") or () if "image" in volume],
    )
    return sys.intern(repr(fields))  # many pods share it


def _container(container: ReadOnlyTree) -> list[object]:
    return [container.get(name) for name in _CONTAINER_FIELDS]
