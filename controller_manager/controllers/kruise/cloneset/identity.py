"""The pods of a CloneSet: the labels of a revision, and the body of a new pod."""

from collections.abc import Mapping
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH, LABEL_POD_TEMPLATE_HASH
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.controllers.kruise.cloneset import storage
from mockube.controller_manager.controllers.kruise.cloneset.spec import SetView
from mockube.controller_manager.workloads import templates
from mockube.controller_manager.workloads.inplace import lifecycle, readiness, update
from mockube.controller_manager.workloads.inplace.lifecycle import State

_REPLACE: Final = "$patch"


# --- revisions


def short_hash(revision: str) -> str:
    """The hash in a revision's name."""
    return revision.rpartition("-")[2]


def revision_of(pod: PodView) -> str:
    return pod.labels.get(LABEL_CONTROLLER_REVISION_HASH, "")


def has_revision(pod: PodView, name: str) -> bool:
    """Also a pod that is labelled with the hash alone, as some installations do."""
    return short_hash(revision_of(pod)) == short_hash(name)


def revision_labels(name: str) -> dict[str, str]:
    return {LABEL_CONTROLLER_REVISION_HASH: name, LABEL_POD_TEMPLATE_HASH: short_hash(name)}


def template_of(revision: ReadOnlyTree) -> ReadOnlyTree:
    """A revision's data is a patch that replaces the template."""
    template = revision["data"]["spec"]["template"]
    return {field: value for field, value in template.items() if field != _REPLACE}


def data_of(owner: SetView) -> dict[str, Any]:
    """What a revision of this set holds: upstream's form, since either manager may have to read it."""
    return {"spec": {"template": {**owner.template, _REPLACE: "replace"}}}


# --- pods


def pod_name(owner: SetView, instance: str) -> str:
    return f"{owner.key.name}-{instance}"


def new_pod(owner: SetView, revision: ReadOnlyTree, instance: str, since: Mapping[str, str]) -> ReadOnlyTree:
    """`since` are the annotations with the start of its lifecycle."""
    pod = templates.pod_of(template_of(revision), owner.object)
    labels = {
        storage.LABEL_INSTANCE: instance,
        **revision_labels(meta.name(revision)),
        **lifecycle.labels_of(State.PREPARING_NORMAL),
    }
    named = meta.with_metadata(pod, name=pod_name(owner, instance))
    labelled = meta.with_annotations(meta.with_labels(named, labels), since)
    spec = {**pod["spec"], **storage.volumes(owner, instance, pod["spec"])}
    gated = readiness.with_gate({**labelled, "spec": spec}, update.GATE)
    return readiness.with_readiness_gate(gated, owner.lifecycle)
