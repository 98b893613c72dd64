"""PodNodeSelector: adds the node selector of a namespace to its pods, and restricts theirs."""

from collections.abc import Mapping
from typing import Final

from mockube.apimachinery import meta, names, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.status import Unknown
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .plugin import PODS, Plugin, forbidden_object

_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT: Final = "clusterDefaultNodeSelector"


class PodNodeSelector(Plugin):
    targets = PODS

    def __init__(self, selectors: Mapping[str, str] | None = None) -> None:
        self._selectors = selectors or {}
        """Allowed node selectors by namespace, and the default of namespaces without an annotation."""

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        namespace_selector = self._namespace_selector(backend, attributes)
        pod_selector = pod["spec"].get("nodeSelector") or {}
        _check_conflicts(attributes, namespace_selector, pod_selector)
        if namespace_selector:
            pod["spec"] = {**pod["spec"], "nodeSelector": {**namespace_selector, **pod_selector}}
        await self.validate(backend, attributes)

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        assert attributes.object is not None
        pod_selector = attributes.object["spec"].get("nodeSelector") or {}
        _check_conflicts(attributes, self._namespace_selector(backend, attributes), pod_selector)
        allowed = _labels(self._selectors.get(attributes.namespace, ""))
        if allowed and not pod_selector.items() <= allowed.items():
            raise forbidden_object(
                attributes, "pod node label selector labels conflict with its namespace whitelist"
            )

    def _namespace_selector(self, backend: Backend, attributes: AdmissionAttributes) -> Mapping[str, str]:
        stored = backend.find_cached(NAMESPACES, "", attributes.namespace)
        if stored is None:
            raise status.internal_error(f"namespace {attributes.namespace} does not exist")
        text = meta.annotations(stored.tree()).get(_ANNOTATION)
        return _labels(self._selectors.get(_DEFAULT, "") if text is None else text)


def _check_conflicts(
    attributes: AdmissionAttributes, namespace_selector: Mapping[str, str], pod_selector: Mapping[str, str]
) -> None:
    if any(pod_selector.get(name, value) != value for name, value in namespace_selector.items()):
        problem = "pod node label selector conflicts with its namespace node label selector"
        raise forbidden_object(attributes, problem)


def _labels(text: str) -> Mapping[str, str]:
    """Parse `a=b, c=d`."""
    selector: dict[str, str] = {}
    for part in text.split(",") if text else ():
        sides = part.split("=")
        if len(sides) != 2:
            raise Unknown(f"invalid selector: [{' '.join(sides)}]", code=500)
        name, value = (side.strip() for side in sides)
        problems = [*names.check_label_key(name), *names.check_label_value(value)]
        if problems:
            raise Unknown(f"Invalid value: {quote(name)}: {'; '.join(problems)}", code=500)
        selector[name] = value
    return selector
