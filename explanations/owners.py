"""The object whose template a pod is made of, which is where a pod is changed for good."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

from .commands import about
from .explanation import ObjectName, Origin, Remedy
from .facts import Facts, Member
from .remedies import patched, template_patch

REPLICA_SETS: Final = GroupResource("apps", "replicasets")
DEPLOYMENTS: Final = GroupResource("apps", "deployments")
STATEFUL_SETS: Final = GroupResource("apps", "statefulsets")
DAEMON_SETS: Final = GroupResource("apps", "daemonsets")
JOBS: Final = GroupResource("batch", "jobs")
_OWNED: Final[Mapping[str, GroupResource]] = {"ReplicaSet": REPLICA_SETS, "Job": JOBS}
"""The controllers of pods that may have a controller with the template, too."""

_TEMPLATE: Final = ("spec", "template", "spec")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
}
"""Where an object has the spec of its pods."""
_FIXED: Final = {"Job": True, "Pod": False}
"""The kinds whose spec of pods cannot be changed, and whether that holds for all fields."""


def template_owner(pod: ReadOnlyTree, facts: Facts) -> ReadOnlyTree:
    """Return the head of the object with the template of a pod, or of what controls it; itself if nothing does."""
    reference = meta.controller_of(pod)
    if reference is None:
        return pod
    resource = _OWNED.get(reference["kind"])
    owner = None if resource is None else facts.find(resource, meta.namespace(pod), reference["name"])
    above = None if owner is None else meta.controller_of(owner)
    return _head(above or reference, meta.namespace(pod))


def template_origin(pod: ReadOnlyTree, facts: Facts, *path: str | Member) -> Origin:
    """Return the field of the object with the template that a field of a pod's spec is made of."""
    owner = template_owner(pod, facts)
    return Origin(object=ObjectName.of(owner), path=(*_TEMPLATES.get(meta.kind(owner), _TEMPLATE), *path))


def template_change(
    pod: ReadOnlyTree,
    facts: Facts,
    text: str,
    change: Mapping[str, Any],
    *,
    is_mutable: bool = False,
    command: Sequence[str] = (),
) -> Remedy:
    """Return the change of the spec of a pod where it is made of.

    `is_mutable`: the field of a pod itself can be changed, too. `command`: the verb and the arguments of a shorter command.
    """
    owner = template_owner(pod, facts)
    kind = meta.kind(owner)
    if kind in _FIXED and (_FIXED[kind] or not is_mutable):
        return Remedy(text=f"{text}, in a {kind} that replaces {meta.name(owner)}.")
    shorter = about(owner, *command) if command else ""
    return patched(f"{text}:", owner, template_patch(owner, change), command=shorter)


def changed_in(pod: ReadOnlyTree) -> str:
    """Return where a field is changed that a pod keeps from its creation."""
    return "a pod that replaces it" if meta.controller_of(pod) is None else "the pod's template"


def _head(reference: ReadOnlyTree, namespace: str) -> ReadOnlyTree:
    return {
        "apiVersion": reference["apiVersion"],
        "kind": reference["kind"],
        "metadata": {"name": reference["name"], "namespace": namespace},
    }
