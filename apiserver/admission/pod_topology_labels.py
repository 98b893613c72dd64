"""PodTopologyLabels: a pod gets the topology labels of its node when it is bound."""

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NODES
from mockube.apimachinery.wellknown import LABEL_REGION, LABEL_ZONE
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Target

from .plugin import POD, Plugin

BINDING: Target = "", "pods", "binding"
TOPOLOGY = frozenset({LABEL_ZONE, LABEL_REGION})


class PodTopologyLabels(Plugin):
    targets = frozenset({POD, BINDING})

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        """Add the labels to a pod, or to a binding, whose labels are added to the pod."""
        written = attributes.object
        assert written is not None
        named = (
            written["spec"].get("nodeName", "")
            if attributes.target == POD
            else written.get("target", {}).get("name", "")
        )
        stored = backend.find_cached(NODES, "", named) if named else None
        if stored is None:
            return
        added = {name: value for name, value in stored.labels.items() if name in TOPOLOGY}
        if added:
            written["metadata"]["labels"] = {**meta.labels(written), **added}
