"""DefaultTolerationSeconds: a pod tolerates a not-ready or unreachable node for some minutes, unless it sets its own tolerations."""

from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import TAINT_NOT_READY, TAINT_UNREACHABLE
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .plugin import PODS, WRITE, Plugin

EFFECT = "NoExecute"


class DefaultTolerationSeconds(Plugin):
    operations = WRITE
    targets = PODS

    def __init__(self, not_ready: int, unreachable: int) -> None:
        self._seconds = {TAINT_NOT_READY: not_ready, TAINT_UNREACHABLE: unreachable}

    async def mutate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        tolerations = pod["spec"].get("tolerations", [])
        added = [
            {"key": taint, "operator": "Exists", "effect": EFFECT, "tolerationSeconds": seconds}
            for taint, seconds in self._seconds.items()
            if not any(_tolerates(toleration, taint) for toleration in tolerations)
        ]
        if added:
            pod["spec"] = pod["spec"] | {"tolerations": [*tolerations, *added]}


def _tolerates(toleration: Tree, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", EFFECT)
