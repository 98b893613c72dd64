"""The pods of a CloneSet: the labels of a revision, and the body of a new pod."""

from collections.abc import Mapping

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH, LABEL_POD_TEMPLATE_HASH
from mockube.client.component_helpers.volumes import pod_volumes
from mockube.client.podview import PodView
from mockube.controller_manager.workloads import templates
from mockube.controller_manager.workloads.revisions import template_of
from mockube.packs.kruise.inplace import lifecycle, readiness, update
from mockube.packs.kruise.inplace.lifecycle import LifecycleState

from . import storage
from .spec import CloneSetView

# --- revisions


def short_hash(revision: str) -> str:
    """Return the hash at the end of a revision's name."""
    return revision.rpartition("-")[2]


def revision_of(pod: PodView) -> str:
    return pod.labels.get(LABEL_CONTROLLER_REVISION_HASH, "")


def has_revision(pod: PodView, name: str) -> bool:
    """Return whether the pod has the revision; its label may contain only the hash, as in some installations."""
    return short_hash(revision_of(pod)) == short_hash(name)


def revision_labels(name: str) -> dict[str, str]:
    return {LABEL_CONTROLLER_REVISION_HASH: name, LABEL_POD_TEMPLATE_HASH: short_hash(name)}


# --- pods


def pod_name(owner: CloneSetView, instance: str) -> str:
    return f"{owner.key.name}-{instance}"


def new_pod(
    owner: CloneSetView, revision: ReadOnlyTree, instance: str, annotations: Mapping[str, str]
) -> ReadOnlyTree:
    """Return the body of a new pod; `annotations` contain the time of its lifecycle state."""
    pod = templates.pod_of(template_of(revision), owner.object)
    labels = {
        storage.LABEL_INSTANCE: instance,
        **revision_labels(meta.name(revision)),
        **lifecycle.labels_of(LifecycleState.PREPARING_NORMAL),
    }
    named = meta.with_metadata(pod, name=pod_name(owner, instance))
    labelled = meta.with_annotations(meta.with_labels(named, labels), annotations)
    volumes = pod_volumes(pod["spec"], storage.claims_by_template(owner, instance))
    spec = {**pod["spec"], **volumes}
    gated = readiness.with_gate({**labelled, "spec": spec}, update.GATE)
    return readiness.with_readiness_gate(gated, owner.lifecycle)
