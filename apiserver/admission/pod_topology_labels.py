"""PodTopologyLabels: a pod that has a node carries the labels that say where the node is."""

from apimachinery import meta
from apimachinery.groups import GroupResource
from apimachinery.wellknown import LABEL_REGION, LABEL_ZONE
from apiserver.admission.plugin import Plugin
from apiserver.rest.attributes import Attributes
from apiserver.rest.backend import Backend

NODES = GroupResource("", "nodes")
TOPOLOGY = frozenset({LABEL_ZONE, LABEL_REGION})


class PodTopologyLabels(Plugin):
    async def mutate(self, backend: Backend, attributes: Attributes) -> None:
        """Of a pod itself, or of the binding that gives it its node; the binding's labels become the pod's."""
        written = attributes.object
        if written is None:
            return
        if attributes.is_for("", "pods"):
            node = written["spec"].get("nodeName", "")
        elif attributes.is_for("", "pods", "binding"):
            node = written.get("target", {}).get("name", "")
        else:
            return
        stored = backend.seen(NODES, "", node) if node else None
        if stored is None:
            return
        added = {name: value for name, value in stored.labels.items() if name in TOPOLOGY}
        if added:
            written["metadata"]["labels"] = {**meta.labels(written), **added}
