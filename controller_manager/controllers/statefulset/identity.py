"""Who a pod of a StatefulSet is: its ordinal, and what it carries to say so."""

from typing import Any, Final

from apimachinery import meta
from apimachinery.wellknown import (
    LABEL_CONTROLLER_REVISION_HASH,
    LABEL_POD_INDEX,
    LABEL_STATEFULSET_POD_NAME,
)
from controller_manager import kinds
from controller_manager.controllers.statefulset import storage
from controller_manager.controllers.statefulset.setview import SetView
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView

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
    template = template_of(revision)
    name = pod_name(owner, ordinal)
    made_by = {LABEL_CONTROLLER_REVISION_HASH: meta.name(revision)}
    metadata = {
        "name": name,
        "generateName": f"{owner.key.name}-",
        "namespace": owner.key.namespace,
        "labels": {**meta.labels(template), **_labels(name, ordinal), **made_by},
        "annotations": meta.annotations(template),
        "ownerReferences": [meta.controller_reference(owner.object)],
        "finalizers": meta.finalizers(template),
    }
    spec = template.get("spec") or {}
    host = {"hostname": name} | ({"subdomain": owner.service_name} if owner.service_name else {})
    return {
        "kind": kinds.PODS.kind,
        "apiVersion": kinds.PODS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": {**spec, **host, **storage.volumes(owner, ordinal, spec)},
    }


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
