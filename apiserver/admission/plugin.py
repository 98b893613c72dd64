"""What an admission plugin is, and how it refuses."""

from collections.abc import Sequence

from mockube.apimachinery import gotext, names, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Cause, Forbidden
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.call import Attributes, Operation, Target
from mockube.apiserver.registry.registry import Registry

CREATE = frozenset({Operation.CREATE})
UPDATE = frozenset({Operation.UPDATE})
WRITE = CREATE | UPDATE

POD: Target = "", "pods", ""
PODS = frozenset({POD})
CLAIM: Target = "", "persistentvolumeclaims", ""
CLAIMS = frozenset({CLAIM})


class Plugin:
    """One plugin. It overrides what it does; it is called for its operations and targets only.

    A tree that it changes may share its inner parts with others: they are replaced, never changed.
    """

    operations: frozenset[Operation] = CREATE
    about: frozenset[Target] = frozenset()
    """The targets that it handles; empty: all."""

    needs: GroupResource | None = None
    """A resource; while it has no objects the plugin has nothing to do, and is not called."""

    def handles(self, operation: Operation, target: Target) -> bool:
        return operation in self.operations and (not self.about or target in self.about)

    async def mutate(self, registry: Registry, attributes: Attributes) -> None:
        """Change the object, or refuse the write. Before a create, the watch cache has all earlier writes."""

    async def validate(self, registry: Registry, attributes: Attributes) -> None:
        """Accept the write, or raise the error that refuses it."""


async def wait_for_earlier_writes(registry: Registry, attributes: Attributes) -> None:
    """Wait until the watch cache has all writes before this one. Before a create, `Admission` has waited."""
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


def name_of(plugin: type[Plugin]) -> str:
    """Return the plugin's name upstream and in flags."""
    return plugin.__name__


def forbidden(attributes: Attributes, problem: str, causes: Sequence[Cause] = ()) -> Forbidden:
    return status.forbidden(attributes.resource.group_resource, _name(attributes), problem, causes)


def unreachable(name: str) -> str:
    """Return why an object of a name cannot be requested, or "": upstream requests those that its caches do not have."""
    if not name:
        return "resource name may not be empty"
    problems = names.check_path_segment_name(name)
    return f"invalid resource name {gotext.quote(name)}: [{' '.join(problems)}]" if problems else ""


def _name(attributes: Attributes) -> str:
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata", {})
    name: str = metadata.get("name") or metadata.get("generateName") or "Unknown"
    return name
