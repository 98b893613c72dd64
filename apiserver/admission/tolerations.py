"""PodTolerationRestriction and ExtendedResourceToleration: add tolerations to pods, and restrict them."""

from collections.abc import Sequence
from typing import Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.resource_names import is_extended
from mockube.apimachinery.status import Unknown
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import canonical
from mockube.apiserver.kinds.core.pod.qos import BEST_EFFORT, qos_class
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation
from mockube.apiserver.wire.go_json import syntax_error

from .configurations import Toleration, TolerationConfiguration
from .plugin import PODS, WRITE, Plugin

_DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
_WHITELIST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_MEMORY_PRESSURE: Final = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}
_CONFLICT: Final = "pod tolerations (possibly merged with namespace default tolerations) conflict with its"


class PodTolerationRestriction(Plugin):
    operations = WRITE
    targets = PODS

    def __init__(self, configuration: TolerationConfiguration | None = None) -> None:
        self._configuration = configuration or TolerationConfiguration()

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        extra: list[Toleration] = []
        if attributes.operation is Operation.CREATE:
            own = _namespace_tolerations(backend, attributes, _DEFAULTS)
            extra = [*(self._configuration.default if own is None else own)]
        if qos_class(pod) != BEST_EFFORT:
            extra.append(_MEMORY_PRESSURE)
        if extra:
            merged = merge([*(pod["spec"].get("tolerations") or ()), *extra])
            pod["spec"] = {**pod["spec"], "tolerations": merged}
        await self.validate(backend, attributes)

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        assert attributes.object is not None
        tolerations = attributes.object["spec"].get("tolerations") or ()
        if not tolerations:
            return
        allowed, scope = _namespace_tolerations(backend, attributes, _WHITELIST), "namespace"
        if allowed is None:
            allowed, scope = self._configuration.whitelist, "cluster"
        if allowed and not all(
            any(_covers(allowed_toleration, toleration) for allowed_toleration in allowed)
            for toleration in tolerations
        ):
            raise Unknown(f"{_CONFLICT} {scope} whitelist", code=500)


def _namespace_tolerations(
    backend: Backend, attributes: AdmissionAttributes, annotation: str
) -> Sequence[Toleration] | None:
    """Return the tolerations of a namespace's annotation; None if it has none."""
    stored = backend.find_cached(NAMESPACES, "", attributes.namespace)
    text = None if stored is None else meta.annotations(stored.tree()).get(annotation)
    if not text:
        return None if text is None else []
    if problem := syntax_error(text.encode()):
        raise Unknown(problem, code=500)
    tolerations = orjson.loads(text)
    if not isinstance(tolerations, list) or not all(
        isinstance(toleration, dict) for toleration in tolerations
    ):
        raise Unknown("json: cannot unmarshal what is not a list of tolerations", code=500)
    return tolerations


def merge(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """Return the tolerations without those that others cover; of equal ones the first is kept."""
    merged: list[Toleration] = []
    for index, toleration in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if canonical(other) != canonical(toleration))
        if not any(_covers(other, toleration) for other in (*merged, *later)):
            merged.append(toleration)
    return merged


def _covers(larger: Toleration, smaller: Toleration) -> bool:
    """Return whether a toleration tolerates everything that another one does."""
    if larger == smaller:
        return True
    operator, effect = larger.get("operator") or "", larger.get("effect") or ""
    key = larger.get("key") or ""
    if (smaller.get("key") or "") != key and (key or operator != "Exists"):
        return False
    if effect and (smaller.get("effect") or "") != effect:
        return False
    limit = larger.get("tolerationSeconds")
    if effect == "NoExecute" and limit is not None:
        seconds = smaller.get("tolerationSeconds")
        if seconds is None or seconds > limit:
            return False
    if operator in ("", "Equal"):
        return smaller.get("operator") == "Equal" and (smaller.get("value") or "") == (
            larger.get("value") or ""
        )
    return bool(operator == "Exists")


class ExtendedResourceToleration(Plugin):
    operations = WRITE
    targets = PODS

    async def mutate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        names = sorted({*_extended_resources(pod["spec"])})
        if not names:
            return
        tolerations = [*(pod["spec"].get("tolerations") or ())]
        for name in names:
            _add(tolerations, {"key": name, "operator": "Exists", "effect": "NoSchedule"})
        pod["spec"] = {**pod["spec"], "tolerations": tolerations}


def _extended_resources(spec: ReadOnlyTree) -> list[str]:
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return [
        name
        for container in containers
        for name in (container.get("resources") or {}).get("requests") or ()
        if is_extended(name)
    ]


def _add(tolerations: list[Toleration], added: Toleration) -> None:
    """Replace the toleration with the same key, effect, operator and value, or append the new one."""
    identity = ("key", "effect", "operator", "value")
    for index, toleration in enumerate(tolerations):
        if all((toleration.get(name) or "") == (added.get(name) or "") for name in identity):
            tolerations[index] = added
            return
    tolerations.append(added)
