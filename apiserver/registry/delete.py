"""Delete objects, one or those of a list. `deletion` has the stages of one deletion.

An object that cannot be read is deleted, too: it has neither finalizers nor a grace period.
"""

from msgspec.structs import replace

from mockube.apimachinery import status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Details
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes, Decision
from mockube.apiserver.schema.decode import DecodeError
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.kv import Delete, Txn

from .body import decode_as
from .delete_options import DeleteOptions, check_preconditions, delete_options, refuse_for_collection
from .deletion import COLLECTION, DELETION, Deletion, admit_deletion, remove, response
from .read import list_objects
from .registry import WRONG_TYPE_ERRORS, CorruptObject, Registry
from .request_context import ListResult, ObjectResult, RequestContext, RequestReport
from .selection import select_by
from .write import run

_UNSAFE_VERB = "unsafe-delete-ignore-read-errors"


async def delete(registry: Registry, context: RequestContext) -> ObjectResult:
    options = await registry.begin(context, _options, registry, context)
    if options.only_unreadable:
        await _authorize_unsafe_deletion(registry, context)
    return await delete_with_options(registry, context, options)


async def _authorize_unsafe_deletion(registry: Registry, context: RequestContext) -> None:
    """Require a verb of its own for the deletion of an object that cannot be read."""
    resource = context.resource
    context.report.annotations["apiserver.k8s.io/unsafe-delete-ignore-read-error"] = ""
    attributes = Attributes.of_row(context.user, _UNSAFE_VERB, resource, context.namespace, context.name)
    decision, reason = await registry.authorization.authorize(attributes)
    if decision is not Decision.ALLOW:
        problem = f"not permitted to do {quote(_UNSAFE_VERB)}, reason: {reason}"
        raise status.forbidden(resource.group_resource, context.name, problem)


def _options(registry: Registry, context: RequestContext) -> DeleteOptions:
    options = delete_options(registry, context)
    warning = registry.scheme.strategy(context.resource).dependents_warning
    if warning and not options.policy:
        context.report.warnings.append(warning)
    return options


async def delete_collection(registry: Registry, context: RequestContext) -> ListResult:
    """Delete the objects of a list; return the list."""
    await select_by(registry, context)  # errors of list options are reported first
    options = await registry.begin(context, _options, registry, context)
    refuse_for_collection(options)
    answer = await list_objects(registry, context)
    for stored in answer.items:
        await yield_to_loop()  # a store in memory is never waited for
        name = stored.key.rpartition(b"/")[2].decode()
        namespace = stored.key.split(b"/")[-2].decode() if context.resource.namespaced else ""
        object_context = RequestContext(
            verb=COLLECTION,
            resource=context.resource,
            namespace=namespace,
            name=name,
            user=context.user,
            query=context.query,
            report=RequestReport(warnings=context.report.warnings),
            part_of=context,
        )
        try:
            await delete_with_options(registry, object_context, options)
        except status.NotFound:
            continue  # another write came first
        finally:
            for key, value in object_context.report.annotations.items():
                context.report.annotations.setdefault(key, value)  # as upstream, which keeps the first value
    if not options.dry_run and not _has_selector(context):
        await _delete_unreadable(registry, context)
    return answer


def _has_selector(context: RequestContext) -> bool:
    return bool(context.parameter("labelSelector") or context.parameter("fieldSelector"))


async def _delete_unreadable(registry: Registry, context: RequestContext) -> None:
    """Delete objects that cannot be read, which lists omit: otherwise a namespace would never become empty."""
    resource = context.resource
    scope = registry.layout.scope(resource, context.namespace)
    for key in registry.watch_cache.unreadable.below(scope) if registry.watch_cache.unreadable else ():
        *_, namespace, name = key.decode(errors="replace").split("/")
        allocations = await registry.allocators.release_unreadable(
            registry, resource, namespace if resource.namespaced else "", name
        )
        transaction = Txn(compare=allocations.compare, then=(Delete(key=key), *allocations.then))
        await registry.commit(transaction, context.author())


async def delete_with_options(
    registry: Registry, context: RequestContext, options: DeleteOptions
) -> ObjectResult:
    """Delete the object of a request according to its options."""
    undeletable = registry.scheme.strategy(context.resource).undeletable
    if context.verb != COLLECTION and (problem := undeletable.get(context.name)):
        raise status.forbidden(context.resource.group_resource, context.name, problem)
    mark: Deletion | None = None
    while True:
        try:
            stored = await registry.find(context.resource, context.namespace, context.name)
            if mark is not None and not _is_marked_object(mark, stored):
                return response(mark, StoredObject(mark.stored.key, mark.value, mark.mark_revision))
            if stored is None:
                raise status.not_found(context.resource.group_resource, context.name)
            deletion = Deletion(registry=registry, context=context, options=options, stored=stored)
            answer = await _delete_readable(deletion)
            if deletion.mark_revision:
                # Another write changed the marked object. It matched the preconditions; its version is that of the mark by now.
                mark, options = deletion, replace(options, version=None)
        except CorruptObject as error:
            answer = await _delete_corrupt(registry, context, options, error)
        if answer is not None:
            return answer


def _is_marked_object(mark: Deletion, stored: StoredObject | None) -> bool:
    """Return whether an object is the one that this deletion has marked: the write that ended what it waited for removes it."""
    return stored is not None and stored.tree()["metadata"]["uid"] == mark.old["metadata"]["uid"]


async def _delete_readable(deletion: Deletion) -> ObjectResult | None:
    """Delete a stored object; return None if another write came between. Raise `CorruptObject` for fields of wrong types."""
    stored = deletion.stored
    deletion.context.work.measure(len(stored.value))
    try:
        await run(deletion, DELETION)
    except WRONG_TYPE_ERRORS as error:
        if _is_well_formed(deletion.registry, stored):
            raise
        raise CorruptObject(stored.key, stored.revision, error) from error
    return deletion.result


def _is_well_formed(registry: Registry, stored: StoredObject) -> bool:
    try:
        decode_as(registry, stored.tree())
    except (DecodeError, *WRONG_TYPE_ERRORS):
        return False
    return True


async def _delete_corrupt(
    registry: Registry, context: RequestContext, options: DeleteOptions, error: CorruptObject
) -> ObjectResult | None:
    """Delete an object that cannot be read, ignoring its finalizers; return None if another write came between."""
    if options.uid is not None:  # the UID cannot be compared
        raise error
    metadata: Tree = {"name": context.name, "resourceVersion": str(error.revision)}
    if context.namespace:
        metadata["namespace"] = context.namespace
    resource = context.resource
    old: Tree = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    check_preconditions(GroupResource(resource.group, resource.kind), context.name, options, metadata)
    await admit_deletion(registry, context, options, old)
    context.report.warn("the object could not be read: it is deleted at once, its finalizers are ignored")
    if not options.dry_run:
        allocations = await registry.allocators.release_unreadable(
            registry, resource, context.namespace, context.name
        )
        if not await remove(registry, context, error.key, error.revision, allocations):
            return None
    subject = resource.group_resource
    return ObjectResult(
        tree=status.success(Details(name=context.name, group=subject.group, kind=subject.resource))
    )
