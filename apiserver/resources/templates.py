"""Where objects say what pods are to be made of them: the kinds that have a pod's spec, and where it is."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from apimachinery.groups import GroupKind

_SPEC_TEMPLATE: Final = ("spec", "template")

TEMPLATES: Final[Mapping[GroupKind, tuple[str, ...]]] = MappingProxyType(
    {
        GroupKind("", "Pod"): (),
        GroupKind("", "PodTemplate"): ("template",),
        GroupKind("", "ReplicationController"): _SPEC_TEMPLATE,
        GroupKind("apps", "DaemonSet"): _SPEC_TEMPLATE,
        GroupKind("apps", "Deployment"): _SPEC_TEMPLATE,
        GroupKind("apps", "ReplicaSet"): _SPEC_TEMPLATE,
        GroupKind("apps", "StatefulSet"): _SPEC_TEMPLATE,
        GroupKind("batch", "CronJob"): ("spec", "jobTemplate", *_SPEC_TEMPLATE),
        GroupKind("batch", "Job"): _SPEC_TEMPLATE,
    }
)
"""The way to what has a pod's metadata and spec: of a pod itself, there is none to go."""


def template(way: tuple[str, ...], tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is at the end of the way; nothing, if that is not there."""
    for step in way:
        tree = tree.get(step) or {}
    return tree
