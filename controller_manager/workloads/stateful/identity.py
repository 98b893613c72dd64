"""Who a pod of a StatefulSet is: its ordinal, and what it carries to say so."""

from typing import Any, Final

from apimachinery import meta
from apimachinery.wellknown import (
    LABEL_CONTROLLER_REVISION_HASH,
    LABEL_POD_INDEX,
    LABEL_STATEFULSET_POD_NAME,
)
from controller_manager.runtime.resource import Tree
from controller_manager.workloads import templates
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.stateful import storage
from controller_manager.workloads.stateful.setview import SetView

_HIGHEST_ORDINAL: Final = 2**31 - 1


def pod_name(owner: SetView, ordinal: int) -> str:
    return f"{owner.key.name}-{ordinal}"


def ordinal_in(owner: SetView, name: str) -> int | None:
    """The ordinal that a name gives a pod of this set; None for any other name, so that names and ordinals are one."""
    parent, _, digits = name.rpartition("-")
    if parent != owner.key.name or not (digits.isascii() and digits.isdecimal()):
        return None
    ordinal = int(digits)
    return ordinal if str(ordinal) == digits and ordinal <= _HIGHEST_ORDINAL else None


def revision_of(pod: PodView) -> str:
    """The name of the ControllerRevision that the pod was made from."""
    return pod.labels.get(LABEL_CONTROLLER_REVISION_HASH, "")


def new_pod(owner: SetView, ordinal: int, revision: Tree) -> dict[str, Any]:
    name = pod_name(owner, ordinal)
    pod = templates.pod_of(template_of(revision), owner.object)
    labels = {**_labels(name, ordinal), LABEL_CONTROLLER_REVISION_HASH: meta.name(revision)}
    named = meta.with_labels(meta.with_metadata(pod, name=name), labels)
    spec = pod["spec"]
    host = {"hostname": name} | ({"subdomain": owner.service_name} if owner.service_name else {})
    return {**named, "spec": {**spec, **host, **storage.volumes(owner, ordinal, spec)}}


def template_of(revision: Tree) -> Tree:
    """A revision's data is a patch that replaces the template."""
    template = revision["data"]["spec"]["template"]
    return {field: value for field, value in template.items() if field != "$patch"}


def data_of(owner: SetView) -> dict[str, Any]:
    """What a revision of this set holds: upstream's form, since either manager may have to read it."""
    return {"spec": {"template": {**owner.object["spec"]["template"], "$patch": "replace"}}}


def matches(owner: SetView, pod: PodView, ordinal: int) -> bool:
    return pod.labels.get(LABEL_STATEFULSET_POD_NAME) == pod.key.name and storage.matches(owner, ordinal, pod)


def restored(owner: SetView, pod: PodView, ordinal: int) -> dict[str, Any]:
    """The pod with what it must carry."""
    labelled = meta.with_labels(pod.object, _labels(pod.key.name, ordinal))
    spec = labelled["spec"]
    return {**labelled, "spec": {**spec, **storage.volumes(owner, ordinal, spec)}}


def _labels(name: str, ordinal: int) -> dict[str, str]:
    return {LABEL_STATEFULSET_POD_NAME: name, LABEL_POD_INDEX: str(ordinal)}
