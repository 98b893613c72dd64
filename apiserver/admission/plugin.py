"""The base class of admission plugins, and the errors of plugins."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import gotext, names, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Cause, Forbidden
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target

CREATE = frozenset({Operation.CREATE})
UPDATE = frozenset({Operation.UPDATE})
WRITE = CREATE | UPDATE

POD: Target = "", "pods", ""
PODS = frozenset({POD})
CLAIM: Target = "", "persistentvolumeclaims", ""
CLAIMS = frozenset({CLAIM})


class Plugin:
    """The base class of a plugin, which is called only for its operations and targets.

    A tree may share its inner parts with other trees: a plugin replaces them, and never changes them in place.
    """

    operations: frozenset[Operation] = CREATE
    targets: frozenset[Target] = frozenset()
    """The targets that it handles; empty: all."""

    needs: GroupResource | None = None
    """If set, the plugin is not called while there are no objects of this resource."""

    def handles(self, operation: Operation, target: Target) -> bool:
        return operation in self.operations and (not self.targets or target in self.targets)

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        """Change the object, or reject the write. Before a create, the watch cache contains all earlier writes."""

    async def authorize(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        """Require what a write needs besides the permission for its request. The object is complete, but not yet valid."""

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        """Raise an error to reject the write."""


async def wait_for_earlier_writes(registry: Registry, attributes: AdmissionAttributes) -> None:
    """Wait until the watch cache contains all earlier writes. Before a create, `Admission` has already waited."""
    if attributes.operation is not Operation.CREATE:
        await registry.watch_cache.fresh()


class InvocationRounds:
    """The webhooks or policies to invoke again because later ones changed the object."""

    def __init__(self) -> None:
        self.output: Tree | None = None
        """The object after the last invocation."""
        self._invoked_keys: set[object] = set()
        self.keys_to_reinvoke: set[object] = set()

    def require_reinvocation(self) -> None:
        self.keys_to_reinvoke |= self._invoked_keys
        self._invoked_keys = set()

    def add_invoked(self, key: object) -> None:
        """Record an invocation that may be repeated."""
        self._invoked_keys.add(key)


_COLLECTOR_FIELDS: Final = frozenset(
    {"ownerReferences", "finalizers", "managedFields", "resourceVersion", "selfLink"}
)


def changes_only_collector_fields(new: Tree, old: Tree) -> bool:
    """Return whether an update changes only fields that the garbage collector needs to change."""
    return _without_collector_fields(new) == _without_collector_fields(old)


def _without_collector_fields(tree: Tree) -> Tree:
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _COLLECTOR_FIELDS}
    return {**tree, "metadata": metadata}


def name_of(plugin: type[Plugin]) -> str:
    """Return the plugin's name upstream and in flags."""
    return plugin.__name__


def forbidden(attributes: AdmissionAttributes, problem: str, causes: Sequence[Cause] = ()) -> Forbidden:
    return status.forbidden(attributes.resource.group_resource, _name(attributes), problem, causes)


def forbidden_object(attributes: AdmissionAttributes, problem: str) -> Forbidden:
    """Return the error with the name in the object only, which may be empty, as some plugins return it upstream."""
    assert attributes.object is not None
    name = attributes.object["metadata"].get("name", "")
    return status.forbidden(attributes.resource.group_resource, name, problem)


def unreachable(name: str) -> str:
    """Return the error of a request for an object of this name, or "": upstream requests objects that its caches lack."""
    if not name:
        return "resource name may not be empty"
    problems = names.check_path_segment_name(name)
    return f"invalid resource name {gotext.quote(name)}: [{' '.join(problems)}]" if problems else ""


def _name(attributes: AdmissionAttributes) -> str:
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata", {})
    name: str = metadata.get("name") or metadata.get("generateName") or "Unknown"
    return name
