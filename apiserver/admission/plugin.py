"""What an admission plugin is, and how it refuses."""

from collections.abc import Sequence

from apimachinery import status
from apimachinery.status import Cause, Forbidden
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend

CREATE = frozenset({Operation.CREATE})
UPDATE = frozenset({Operation.UPDATE})
WRITE = CREATE | UPDATE


class Plugin:
    """One plugin. It overrides what it does; it is asked for its operations alone.

    A tree that it changes may share its inner parts with others: they are replaced, never changed.
    """

    operations: frozenset[Operation] = CREATE

    async def mutate(self, backend: Backend, attributes: Attributes) -> None:
        """Change what is written, or refuse it; what others did before this write came is seen in the mirror."""

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        """Let pass what is written, or raise why not."""


def forbidden(attributes: Attributes, problem: str, causes: Sequence[Cause] = ()) -> Forbidden:
    return status.forbidden(attributes.resource.group_resource, _name(attributes), problem, causes)


def _name(attributes: Attributes) -> str:
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata", {})
    name: str = metadata.get("name") or metadata.get("generateName") or "Unknown"
    return name
