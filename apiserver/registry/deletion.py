"""The stages of the deletion of one object: at once, or after finalizers and kubelets have finished.

An object with finalizers, which the propagation policy may add, or with a grace period is only marked. Others are removed. The
write that ends what a marked object waits for removes it: `commit` in `stages`.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import status, timestamps
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Details
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.strategy import BACKGROUND, DEFAULT, UNSUPPORTED, Strategy
from mockube.apiserver.storage.stored_object import StoredObject, encoder
from mockube.etcd.kv import Compare, Delete, Target, Txn

from .convert import deleted_object, marked_object
from .delete_options import FINALIZER_OF, DeleteOptions, check_own_preconditions, check_preconditions
from .registry import Allocations, Registry
from .request_context import AdmissionAttributes, ObjectResult, Operation, RequestContext
from .sent_fields import canonical_with, stored_text

COLLECTION: Final = "deletecollection"
"""The verb, whose attributes for admission have no name, as upstream."""
_READABLE: Final = (
    "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: "
    "unsafe deletion is not allowed because the object is decodable from storage"
)
_POLICY_FINALIZERS: Final = frozenset(FINALIZER_OF.values())


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
    await admit_deletion(deletion.registry, deletion.context, deletion.options, deletion.old)


async def admit_deletion(
    registry: Registry, context: RequestContext, options: DeleteOptions, old: Tree
) -> None:
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
            transaction = Txn(compare=(seen,), then=(put,))
            result = await registry.commit(transaction, deletion.context.author())
            if not result.succeeded:
                return
            revision = result.revision
            if not deletion.waits:
                deletion.mark_revision = revision
                # Informers receive the mark before the deletion, as with etcd.
                await registry.watch_cache.deliver()
        if not deletion.waits:
            allocations = await registry.allocators.allocate(registry, resource, None, deletion.marked)
            if not await remove(registry, deletion.context, stored.key, revision, allocations):
                return
    deletion.result = response(deletion, StoredObject(stored.key, deletion.value, revision))


async def remove(
    registry: Registry, context: RequestContext, key: bytes, revision: int, allocations: Allocations
) -> bool:
    """Remove an object with its allocations; return whether it was still at the revision."""
    seen, operation = Compare(key=key, target=Target.MOD, operand=revision), Delete(key=key)
    transaction = Txn(compare=(seen, *allocations.compare), then=(operation, *allocations.then))
    return (await registry.commit(transaction, context.author())).succeeded


def response(deletion: Deletion, last: StoredObject) -> ObjectResult:
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
    if is_ending or not strategy.marks_without_policy:
        _set_policy(meta, _policy(strategy, meta, options))
    if grace is None:
        if not strategy.pending(tree) and (is_ending or not strategy.marks_first):
            return tree
        grace = 0
    if is_ending or not strategy.has_plain_deletion:
        meta["deletionGracePeriodSeconds"] = grace
    if not is_ending:
        meta["deletionTimestamp"] = timestamps.format_time(timestamps.after(now, timestamps.span_of(grace)))
        if not strategy.has_plain_deletion and meta.get("generation"):
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
