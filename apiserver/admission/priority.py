"""Priority: sets the priority of a pod to that of its PriorityClass."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

from .plugin import POD, WRITE, Plugin, forbidden

PRIORITY_CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")
PREEMPT = "PreemptLowerPriority"


class _ComputedPriority(NamedTuple):
    name: str = ""
    value: int = 0
    preemption: str = PREEMPT


class Priority(Plugin):
    operations = WRITE
    targets = frozenset({POD, (*PRIORITY_CLASSES, "")})

    def __init__(self) -> None:
        self._default = _ComputedPriority()
        """The priority of pods without a class, when the newest revision of the classes was `_newest`."""
        self._newest = -1

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        if attributes.target != POD:
            return
        if attributes.operation is Operation.UPDATE:
            _keep_computed_fields(pod, (attributes.old or {}).get("spec", {}))
        else:
            spec = pod["spec"]
            name = spec.get("priorityClassName", "")
            computed = (
                _priority_of_name(backend, attributes, name) if name else self._default_priority(backend)
            )
            pod["spec"] = _with_priority(attributes, spec, computed)

    def _default_priority(self, backend: Backend) -> _ComputedPriority:
        """Return the priority of the default class, which is cached until a class changes."""
        newest = backend.resource_cache(PRIORITY_CLASSES).history.newest
        if newest != self._newest:
            default = _default_class(backend)
            self._default, self._newest = (
                _ComputedPriority() if default is None else _priority_of_class(default),
                newest,
            )
        return self._default

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        """Refuse a second default class."""
        priority_class = attributes.object
        assert priority_class is not None
        if attributes.target == POD or not priority_class.get("globalDefault"):
            return
        await backend.watch_cache.fresh()
        default = _default_class(backend)
        if default is not None and (
            attributes.operation is Operation.CREATE or meta.name(default) != meta.name(priority_class)
        ):
            problem = (
                f"PriorityClass {meta.name(default)} is already marked as default. Only one default can exist"
            )
            raise forbidden(attributes, problem)


def _keep_computed_fields(pod: Tree, old: Mapping[str, Any]) -> None:
    """Keep the computed fields that an update omits."""
    computed = {field: old[field] for field in ("priority", "preemptionPolicy") if field in old}
    pod["spec"] = computed | pod["spec"]


def _with_priority(attributes: AdmissionAttributes, spec: Tree, computed: _ComputedPriority) -> Tree:
    priority = spec.get("priority")
    if priority is not None and priority != computed.value:
        raise forbidden(attributes, _difference_text("integer value of priority", priority, computed.value))
    preemption = spec.get("preemptionPolicy")
    if preemption is not None and preemption != computed.preemption:
        raise forbidden(
            attributes, _difference_text("string value of PreemptionPolicy", preemption, computed.preemption)
        )
    named = {"priorityClassName": computed.name} if computed.name else {}
    return spec | named | {"priority": computed.value, "preemptionPolicy": computed.preemption}


def _difference_text(field: str, value: object, computed: object) -> str:
    return (
        f"the {field} ({value}) must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )


def _priority_of_name(backend: Backend, attributes: AdmissionAttributes, name: str) -> _ComputedPriority:
    stored = backend.find_cached(PRIORITY_CLASSES, "", name)
    if stored is None:
        raise forbidden(attributes, f"no PriorityClass with name {name} was found")
    return _priority_of_class(stored.shared_tree())


def _priority_of_class(tree: ReadOnlyTree) -> _ComputedPriority:
    return _ComputedPriority(meta.name(tree), tree.get("value", 0), tree.get("preemptionPolicy", PREEMPT))


def _default_class(backend: Backend) -> ReadOnlyTree | None:
    """Return the default class; of several, which only a race can create, the one with the lowest value."""
    classes = backend.list_cached(PRIORITY_CLASSES)
    trees = [tree for stored in classes if (tree := stored.shared_tree()).get("globalDefault")]
    return min(trees, key=lambda tree: tree["value"], default=None)
