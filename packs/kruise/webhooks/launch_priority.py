"""Launch priorities: a pod gets the variables with which its containers wait until it is their turn."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import gotext, meta, randomness
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.admission.plugin import PODS, Plugin
from mockube.apiserver.packs.webhook import denial_error
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.packs.kruise import launch_priority

_WEBHOOK: Final = "mpod.kb.io"
_INTERNAL_ERROR: Final = 500


class LaunchPriority(Plugin):
    targets = PODS

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        priorities = _priorities(pod)
        if not priorities:
            return
        metadata = pod["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            # The barrier's name contains the pod's, which the server would generate later.
            name = f"{metadata['generateName']}{randomness.suffix(registry.random)}"
            metadata = pod["metadata"] = {**metadata, "name": name}
        pod["spec"] = {
            **pod["spec"],
            "containers": [
                _with_variable(container, metadata.get("name") or "", priority)
                for container, priority in zip(pod["spec"]["containers"], priorities, strict=True)
            ],
        }


def _with_variable(container: ReadOnlyTree, pod_name: str, priority: int) -> Tree:
    return {
        **container,
        "env": [*(container.get("env") or ()), launch_priority.barrier_variable(pod_name, priority)],
    }


def _priorities(pod: ReadOnlyTree) -> Sequence[int]:
    """Return the priorities of the pod's containers; none if they start together."""
    containers = pod["spec"].get("containers") or ()
    if len(containers) == 1:
        return ()
    if meta.annotations(pod).get(launch_priority.ANNOTATION_ORDER) == launch_priority.ORDERED:
        return range(0, -len(containers), -1)
    priorities = [_priority(container) for container in containers]
    return priorities if len({*priorities}) > 1 else ()


def _priority(container: ReadOnlyTree) -> int:
    priority = 0
    for variable in container.get("env") or ():
        if variable["name"] == launch_priority.ENV_PRIORITY:
            try:
                priority = gotext.parse_int(variable.get("value") or "", function="Atoi")
            except ValueError as error:
                raise denial_error(_WEBHOOK, str(error), _INTERNAL_ERROR) from error
    return priority
