"""Delete objects: at once, or after finalizers and kubelets have finished.

An object with finalizers, which the propagation policy may add, or with a grace period is only marked. Others are removed. The
write that ends what a marked object waits for removes it: `commit` in `stages`.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import status, timestamps
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Details
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes, Decision
from mockube.apiserver.kinds.strategy import BACKGROUND, DEFAULT, UNSUPPORTED, Strategy
from mockube.apiserver.schema.decode import DecodeError
from mockube.apiserver.storage.stored_object import StoredObject, encoder
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.kv import Compare, Delete, Target, Txn

from .body import decode_as
from .convert import deleted_object, marked_object
from .delete_options import (
    FINALIZER_OF,
    DeleteOptions,
    check_own_preconditions,
    check_preconditions,
    delete_options,
    refuse_for_collection,
)
from .read import list_objects
from .registry import WRONG_TYPE_ERRORS, Allocations, CorruptObject, Registry
from .request_context import (
    AdmissionAttributes,
    ListResult,
    ObjectResult,
    Operation,
    RequestContext,
    RequestReport,
)
from .selection import select_by
from .sent_fields import canonical_with, stored_text
from .write import run

COLLECTION = "deletecollection"
"""The verb, whose attributes for admission have no name, as upstream."""
_UNSAFE_VERB = "unsafe-delete-ignore-read-errors"
_READABLE = (
    "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: "
    "unsafe deletion is not allowed because the object is decodable from storage"
)
_POLICY_FINALIZERS = frozenset(FINALIZER_OF.values())


async def delete(registry: Registry, context: RequestContext) -> ObjectResult:
    options = await registry.begin(context, _options, registry, context)
    if options.only_unreadable:
        await _authorize_unsafe_deletion(registry, context)
    return await delete_with_options(registry, context, options)


async def _authorize_unsafe_deletion(registry: Registry, context: RequestContext) -> None:
    """Require a verb of its own for the deletion of an object that cannot be read."""
    resource = context.resource
    context.report.annotations["apiserver.k8s.io/unsafe-delete-ignore-read-error"] = ""
    attributes = Attributes(
        user=context.user,
        verb=_UNSAFE_VERB,
        group=resource.group,
        version=resource.version,
        resource=resource.name,
        namespace=context.namespace,
        name=context.name,
    )
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
        await registry.kv.txn(Txn(compare=allocations.compare, then=(Delete(key=key), *allocations.then)))


class Deletion(Struct, kw_only=True):
    """What a request to delete one object asks for, and what its stages have made of it so far."""

    registry: Registry
    context: RequestContext
    options: DeleteOptions
    stored: StoredObject
    strategy: Strategy = DEFAULT

    # What the stages make, in their order:
    old: Tree = {}
    """The stored object in the version in which its deletion is admitted."""
    marked: Tree = {}
    """The object that is marked as being deleted."""
    waits: bool = False
    """Whether the object is only marked: for finalizers, or for its grace period. Others are removed."""
    value: bytes = b""
    """The text of the marked object."""
    mark_revision: int = 0
    """The revision of the mark, if this deletion has stored it."""
    result: ObjectResult | None = None
    """None at the end if another write came between, so that all stages are repeated with the newer object."""

    def __post_init__(self) -> None:
        self.strategy = self.registry.scheme.strategy(self.context.resource)


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
                return _answer(mark, StoredObject(mark.stored.key, mark.value, mark.mark_revision))
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
    await _admit(registry, context, options, old)
    context.report.warn("the object could not be read: it is deleted at once, its finalizers are ignored")
    if not options.dry_run:
        allocations = await registry.allocators.release_unreadable(
            registry, resource, context.namespace, context.name
        )
        if not await _remove(registry, error.key, error.revision, allocations):
            return None
    subject = resource.group_resource
    return ObjectResult(
        tree=status.success(Details(name=context.name, group=subject.group, kind=subject.resource))
    )


async def _admit(registry: Registry, context: RequestContext, options: DeleteOptions, old: Tree) -> None:
    attributes = AdmissionAttributes(
        operation=Operation.DELETE,
        context=context,
        name="" if context.verb == COLLECTION else context.name,
        object=None,
        old=old,
        dry_run=options.dry_run,
    )
    await registry.admission.mutate(registry, attributes)
    await registry.admission.validate(registry, attributes)


# --- the stages of a deletion


def decode(deletion: Deletion) -> None:
    if deletion.options.only_unreadable:
        problem = _READABLE.format(deletion.stored.key.decode())
        raise status.conflict(deletion.context.resource.group_resource, deletion.context.name, problem)
    deletion.old = deletion.stored.tree()


async def convert(deletion: Deletion) -> None:
    size = len(deletion.stored.value)
    deletion.old = await deleted_object(deletion.registry, deletion.context.resource, deletion.old, size)


def check(deletion: Deletion) -> None:
    """Refuse to delete an object that does not match the preconditions."""
    registry, resource, name = deletion.registry, deletion.context.resource, deletion.context.name
    options, old_metadata = deletion.options, deletion.old["metadata"]
    if deletion.strategy.checks_preconditions:
        in_lower_case = bool(resource.group) and not registry.is_before("1.37")
        check_own_preconditions(
            resource.group_resource, name, options, old_metadata, in_lower_case=in_lower_case
        )
    about = GroupResource(registry.stored_row(resource).group, resource.kind)
    check_preconditions(about, name, options, old_metadata)


def mark(deletion: Deletion) -> None:
    """Mark the object. A deletion that changes nothing, because the object is being deleted already, ends without admission."""
    strategy, options = deletion.strategy, deletion.options
    marked = _mark(strategy, deletion.old, options, deletion.registry.clock.now())
    if marked is None:
        deletion.result = ObjectResult(code=_code_of_waiting(options), stored=deletion.stored)
        return
    has_grace = strategy.is_graceful and marked["metadata"].get("deletionGracePeriodSeconds", 0) > 0
    is_first = strategy.marks_first and "deletionTimestamp" not in deletion.old["metadata"]
    deletion.marked, deletion.waits = marked, strategy.pending(marked) or has_grace or is_first


async def admit(deletion: Deletion) -> None:
    await _admit(deletion.registry, deletion.context, deletion.options, deletion.old)


async def convert_mark(deletion: Deletion) -> None:
    if deletion.waits:
        size = len(deletion.stored.value)
        deletion.marked = await marked_object(
            deletion.registry, deletion.context.resource, deletion.marked, size
        )


def encode(deletion: Deletion) -> None:
    stored, marked = deletion.stored, deletion.marked
    ending = deletion.old["metadata"].get("deletionTimestamp")
    if not deletion.waits and marked["metadata"].get("deletionTimestamp") == ending:
        deletion.value = (
            stored.value
        )  # an object that is removed at once, without grace, is returned unchanged
    elif raw := deletion.strategy.raw:
        deletion.value = canonical_with(marked, {name: stored_text(stored.value, name) for name in raw})
    else:
        deletion.value = encoder(deletion.context.resource)(marked)


async def commit(deletion: Deletion) -> None:
    """Store the marked object, and remove it if it waits for nothing; a dry run does neither."""
    registry, resource, stored = deletion.registry, deletion.context.resource, deletion.stored
    revision = stored.revision
    if not deletion.options.dry_run:
        if deletion.value != stored.value:
            put = registry.put(stored.key, deletion.value)
            seen = Compare(key=stored.key, target=Target.MOD, operand=revision)
            result = await registry.kv.txn(Txn(compare=(seen,), then=(put,)))
            if not result.succeeded:
                return
            revision = result.revision
            if not deletion.waits:
                deletion.mark_revision = revision
                # Informers receive the mark before the deletion, as with etcd.
                await registry.watch_cache.deliver()
        if not deletion.waits:
            allocations = await registry.allocators.allocate(registry, resource, None, deletion.marked)
            if not await _remove(registry, stored.key, revision, allocations):
                return
    deletion.result = _answer(deletion, StoredObject(stored.key, deletion.value, revision))


async def _remove(registry: Registry, key: bytes, revision: int, allocations: Allocations) -> bool:
    """Remove an object with its allocations; return whether it was still at the revision."""
    seen, operation = Compare(key=key, target=Target.MOD, operand=revision), Delete(key=key)
    transaction = Txn(compare=(seen, *allocations.compare), then=(operation, *allocations.then))
    return (await registry.kv.txn(transaction)).succeeded


def _answer(deletion: Deletion, last: StoredObject) -> ObjectResult:
    if deletion.waits:
        return ObjectResult(code=_code_of_waiting(deletion.options), stored=last)
    if deletion.strategy.returns_deleted:
        return ObjectResult(stored=last)
    subject = deletion.context.resource.group_resource
    uid = last.tree()["metadata"]["uid"]
    details = Details(name=deletion.context.name, group=subject.group, kind=subject.resource, uid=uid)
    return ObjectResult(tree=status.success(details))


DELETION: Final = (decode, convert, check, mark, admit, convert_mark, encode, commit)


# --- the mark


def _mark(strategy: Strategy, old: Tree, options: DeleteOptions, now: datetime) -> Tree | None:
    """Return the marked object; None if it is being deleted already, and the request does not shorten the grace period."""
    meta = dict(old["metadata"])
    tree, is_ending = old | {"metadata": meta}, "deletionTimestamp" in meta
    if is_ending and strategy.marks_first and strategy.pending(tree):
        return None
    grace = strategy.grace(old, options.grace)
    if is_ending and grace is not None:
        if meta.get("deletionGracePeriodSeconds"):
            return _mark_sooner(tree, options.grace)
        grace = None  # the grace period is over: only finalizers remain
    _set_policy(meta, _policy(strategy, meta, options))
    if grace is None:
        if not strategy.pending(tree) and (is_ending or not strategy.marks_first):
            return tree
        grace = 0
    if not is_ending:
        meta["deletionTimestamp"] = timestamps.format_time(timestamps.after(now, timestamps.span_of(grace)))
        if not strategy.has_plain_deletion:
            meta["deletionGracePeriodSeconds"] = grace
            if meta.get("generation"):
                meta["generation"] += 1
    strategy.prepare_delete(tree)
    return tree


def _mark_sooner(tree: Tree, grace_period: int | None) -> Tree | None:
    """Shorten the grace period of a pending deletion; return None if it would not be shorter."""
    meta = tree["metadata"]
    remaining: int = meta.get("deletionGracePeriodSeconds", 0)
    if grace_period is None or grace_period >= remaining:
        return None
    end = timestamps.after(
        timestamps.parse_time(meta["deletionTimestamp"]), -timestamps.span_of(remaining - grace_period)
    )
    meta |= {"deletionTimestamp": timestamps.format_time(end), "deletionGracePeriodSeconds": grace_period}
    return tree


def _policy(strategy: Strategy, meta: Tree, options: DeleteOptions) -> str:
    """Return the propagation policy: the client's, or that of an existing finalizer, or the default."""
    if strategy.dependents == UNSUPPORTED:
        return BACKGROUND
    if options.cascading:
        return strategy.cascading
    has_policy = not _POLICY_FINALIZERS.isdisjoint(meta.get("finalizers", ()))
    return options.policy or ("" if has_policy else strategy.dependents)


def _set_policy(meta: Tree, policy: str) -> None:
    """Set the finalizer of a propagation policy in place of any other policy's."""
    if not policy:
        return
    finalizers = [name for name in meta.get("finalizers", []) if name not in _POLICY_FINALIZERS]
    if policy in FINALIZER_OF:
        finalizers.append(FINALIZER_OF[policy])
    meta["finalizers"] = finalizers
    if not finalizers:
        del meta["finalizers"]


def _code_of_waiting(options: DeleteOptions) -> int:
    """Return 202 only for requests with the deprecated orphanDependents, as upstream does."""
    return 202 if options.cascading else 200
