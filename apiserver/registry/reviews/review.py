"""The common part of all reviews: read and admit them like stored objects, and return them with a status."""

from collections.abc import Callable
from typing import TypeAlias

from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import (
    AdmissionAttributes,
    ObjectResult,
    Operation,
    RequestContext,
    write_options,
)

Check: TypeAlias = Callable[[Tree], None]
"""Raises an ApiError for an invalid review."""


def _accept(_: Tree) -> None:
    """Accept every review."""


async def read(registry: Registry, context: RequestContext, check: Check = _accept) -> Tree:
    """Return the admitted review, with its metadata and spec. Validating plugins get a review that has passed the check."""
    attributes = await run_mutation(registry, context)
    check(object_of(attributes))
    await registry.admission.validate(registry, attributes)
    return object_of(attributes)


async def run_mutation(registry: Registry, context: RequestContext) -> AdmissionAttributes:
    """Return the attributes of the review after mutating admission."""
    options = write_options(context, "CreateOptions")
    tree, _ = await registry.begin(context, read_object, registry, context, options)
    if context.subresource is None:
        metadata.clear_system_fields(tree)
    metadata.match_namespace(tree, context)
    tree = metadata.without_duplicate_owners(tree, context)
    tree = await registry.run(context, metadata.manage_response, registry, context, tree, options)
    attributes = AdmissionAttributes(
        operation=Operation.CREATE, context=context, name=context.name, object=tree, dry_run=options.dry_run
    )
    await registry.admission.mutate(registry, attributes)
    tree = object_of(attributes)
    attributes.object = metadata.without_duplicate_owners(tree, context, when=metadata.AFTER_ADMISSION)
    return attributes


def object_of(attributes: AdmissionAttributes) -> Tree:
    """Return the object, which a plugin may have replaced."""
    assert attributes.object is not None
    return attributes.object


def answer(tree: Tree, status: Tree) -> ObjectResult:
    """Return the review with its status, without fields that are not set."""
    spec = {"spec": tree["spec"]} if tree.get("spec") is not None else {}
    head = {"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": tree["metadata"]}
    return ObjectResult(code=201, tree={**head, **spec, "status": status})


def without_empty(fields: Tree) -> Tree:
    return {name: value for name, value in fields.items() if value not in ("", None, False, [], {})}
