"""Objects that are posted as reviews are: they are validated, carried out and returned with a status, and not stored."""

from mockube.apimachinery import status
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.registry.reviews import review

_NAME = "posted"
"""The name by which an object without one is validated: it needs none."""


async def read_posted(registry: Registry, context: RequestContext) -> Tree:
    """Return the object of a request; raise an ApiError with its causes if it is invalid."""

    def check(tree: Tree) -> None:
        named = {**tree, "metadata": {"name": _NAME, **tree["metadata"]}}
        if field_errors := registry.scheme.rules.check_create(context.resource, named):
            raise status.invalid(context.resource.group_kind, "", field_errors)

    return await review.read(registry, context, check)
