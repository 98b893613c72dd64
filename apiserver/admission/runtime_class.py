"""RuntimeClass: a pod gets the overhead and the scheduling of its runtime class."""

from mockube.apimachinery import gotext, quantity
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.checks import canonical
from mockube.apiserver.registry.body import has_sent_empty
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .plugin import PODS, Plugin, forbidden, unreachable

RUNTIME_CLASSES = GroupResource("node.k8s.io", "runtimeclasses")


class RuntimeClass(Plugin):
    targets = PODS

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        runtime = _runtime_class(backend, attributes, pod)
        if runtime is not None:
            _set_overhead(attributes, pod, runtime)
            _set_scheduling(attributes, pod, runtime)

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        overhead = pod["spec"].get("overhead")
        runtime = _runtime_class(backend, attributes, pod)
        pod_fixed = ((runtime or {}).get("overhead") or {}).get("podFixed")
        if pod_fixed and not _is_same(overhead, pod_fixed):
            raise _other_overhead(attributes)
        if not pod_fixed and (
            overhead or has_sent_empty(attributes.context.body, attributes.patched, "spec", "overhead")
        ):
            raise forbidden(
                attributes,
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            )


def _runtime_class(backend: Backend, attributes: AdmissionAttributes, pod: Tree) -> Tree | None:
    name = pod["spec"].get("runtimeClassName")
    if name is None:
        return None
    stored = backend.find_cached(RUNTIME_CLASSES, "", name) if name else None
    if stored is None:
        if problem := unreachable(name):
            raise ApiError(problem)
        raise forbidden(attributes, f"pod rejected: RuntimeClass {gotext.quote(name)} not found")
    return stored.tree()


def _set_overhead(attributes: AdmissionAttributes, pod: Tree, runtime: Tree) -> None:
    pod_fixed = (runtime.get("overhead") or {}).get("podFixed")
    if not pod_fixed:
        return
    overhead = pod["spec"].get("overhead")
    if overhead and not _is_same(overhead, pod_fixed):
        raise _other_overhead(attributes)
    pod["spec"] = pod["spec"] | {"overhead": pod_fixed}


def _other_overhead(attributes: AdmissionAttributes) -> Exception:
    return forbidden(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def _is_same(overhead: Tree | None, pod_fixed: Tree) -> bool:
    amounts = [
        {name: quantity.parse(amount) for name, amount in (resource_list or {}).items()}
        for resource_list in (overhead, pod_fixed)
    ]
    return amounts[0] == amounts[1]


def _set_scheduling(attributes: AdmissionAttributes, pod: Tree, runtime: Tree) -> None:
    scheduling, spec = runtime.get("scheduling") or {}, dict(pod["spec"])
    if node_selector := scheduling.get("nodeSelector"):
        selector = spec.get("nodeSelector", {})
        for label, value in node_selector.items():
            if selector.get(label, value) != value:
                raise forbidden(
                    attributes,
                    f"conflict: runtimeClass.scheduling.nodeSelector[{label}] = {value}; "
                    f"pod.spec.nodeSelector[{label}] = {selector[label]}",
                )
        spec["nodeSelector"] = selector | node_selector
    if added := scheduling.get("tolerations"):
        tolerations = spec.get("tolerations", [])
        present = {canonical(toleration) for toleration in tolerations}
        spec["tolerations"] = [
            *tolerations,
            *(toleration for toleration in added if canonical(toleration) not in present),
        ]
    pod["spec"] = spec
