"""TaintNodesByCondition: a new node gets no pods before it reports ready."""

from mockube.apimachinery.wellknown import TAINT_NOT_READY
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .plugin import Plugin

EFFECT = "NoSchedule"


class TaintNodesByCondition(Plugin):
    targets = frozenset({("", "nodes", "")})

    async def mutate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        node = attributes.object
        assert node is not None
        spec = node.get("spec", {})
        taints = spec.get("taints", [])
        if not any(taint.get("key") == TAINT_NOT_READY and taint.get("effect") == EFFECT for taint in taints):
            node["spec"] = spec | {"taints": [*taints, {"key": TAINT_NOT_READY, "effect": EFFECT}]}
