"""Update: an object is replaced, whole or through a subresource, if it was not changed meanwhile.

`guaranteed_update` is the read-modify-write loop of updates, patches and subresources. It is repeated if another write
came between, which fails if the client sent the resourceVersion that it had read.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import orjson

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.piecewise import decode_in_pieces
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.strategy import Strategy, apply_fields, is_changed, preserve_fields
from mockube.apiserver.patch.apply.managers import with_old_times
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.convert import (
    dry_run_result,
    old_object,
    to_storage,
    to_stored,
    with_conversions,
)
from mockube.apiserver.registry.create import create_on_update
from mockube.apiserver.registry.empty_lists import EMPTY_LIST, with_old_empty_lists, without_empty_lists
from mockube.apiserver.registry.registry import Allocations, Registry
from mockube.apiserver.registry.request_context import (
    AdmissionAttributes,
    ObjectResult,
    Operation,
    RequestContext,
    WriteOptions,
    write_options,
)
from mockube.apiserver.registry.sent_fields import (
    canonical_with,
    check_unchanged,
    check_with_empty_collections,
    has_more_empty,
    stored_text,
    with_empty_maps,
)
from mockube.apiserver.storage.stored_object import StoredObject, encoder
from mockube.etcd.errors import TooLarge
from mockube.etcd.kv import Compare, Delete, Target, Txn

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

Transform: TypeAlias = Callable[[Tree], Awaitable[Tree]]
"""Returns the new object for the old one, which it must not change."""


async def update(registry: Registry, context: RequestContext) -> ObjectResult:
    options = write_options(context, "UpdateOptions")
    sent = await registry.begin(context, read_object, registry, context, options)
    metadata.match_namespace(sent, context)
    metadata.match_name(sent, context.name)
    sent = metadata.without_duplicate_owners(sent, context)
    uid = sent["metadata"].get("uid", "")
    original = await registry.run(context, orjson.dumps, sent)
    first = [sent]

    def sent_tree() -> Tree:
        tree: Tree = first.pop() if first else decode_in_pieces(original)
        return tree

    def new_tree(old: Tree) -> Tree:
        return metadata.manage_change(registry, context, sent_tree(), old, options)

    async def replace(old: Tree) -> Tree:
        return await registry.run(context, new_tree, old)

    async def create() -> ObjectResult:
        tree = await registry.run(context, sent_tree)
        key = registry.layout.object(context.resource, context.namespace, context.name)
        _check_uid(context, uid, "", _named_key(registry, key, options))
        return await create_on_update(registry, context, tree, options)

    may_create = registry.scheme.strategy(context.resource).create_on_update
    return await guaranteed_update(
        registry, context, options, replace, uid=uid, create=create if may_create else None
    )


async def guaranteed_update(
    registry: Registry,
    context: RequestContext,
    options: WriteOptions,
    transform: Transform,
    *,
    uid: str = "",
    create: Callable[[], Awaitable[ObjectResult]] | None = None,
) -> ObjectResult:
    """Replace an object by the result of `transform`; Conflict if `uid` is not its UID.

    An object that does not exist is created by `create`, or else is NotFound.
    """
    while True:
        stored = await registry.find(context.resource, context.namespace, context.name)
        if stored is None:
            answer = await _create_missing(registry, context, create)
        else:
            answer = await _replace(registry, context, options, transform, stored, uid)
        if answer is not None:
            return answer


async def _create_missing(
    registry: Registry, context: RequestContext, create: Callable[[], Awaitable[ObjectResult]] | None
) -> ObjectResult | None:
    """Create an object that does not exist; return None if another request created it at the same time."""
    if create is None:
        raise status.not_found(context.resource.group_resource, context.name)
    try:
        return await create()
    except status.AlreadyExists:
        if await registry.find(context.resource, context.namespace, context.name) is None:
            raise  # by a webhook, for example
        return None


async def _replace(
    registry: Registry,
    context: RequestContext,
    options: WriteOptions,
    transform: Transform,
    stored: StoredObject,
    uid: str,
) -> ObjectResult | None:
    """Replace an object by the result of `transform`; return None if another write may have changed it meanwhile."""
    conversion = registry.scheme.conversion(context.resource)
    context.work.measure(len(stored.value))
    if context.work.needs_reservation and await context.work.reserve():
        return None  # others may have changed it
    context.live = stored
    raw = await registry.run(context, stored.tree)
    _check_uid(context, uid, raw["metadata"]["uid"], _named_key(registry, stored.key, options))
    old, client_object = await old_object(registry, context, stored, raw)
    new = await with_conversions(context, partial(transform, client_object))
    if conversion is not None:
        new = await registry.run(context, to_stored, registry, conversion, new)
    new = new | {"metadata": dict(new["metadata"])}  # it may be the old one's
    new, allocations = await _prepare(registry, context, options, new, old)
    new = await registry.run(context, _without_versions, raw, old, new)
    to_store = await to_storage(registry, context, new) if context.resource.custom else new
    encoded = await registry.run(context, _encode, registry, context, to_store, raw)
    if encoded is None:
        return ObjectResult(stored=stored)
    to_store, value = encoded
    if not context.resource.custom:
        new = to_store
    if raw_fields := registry.scheme.strategy(context.resource).raw:
        value = canonical_with(new, {name: stored_text(stored.value, name) for name in raw_fields})
    if options.dry_run:
        new = await dry_run_result(registry, context, new, to_store)
        new["metadata"]["resourceVersion"] = str(stored.revision)
        return ObjectResult(tree=new)
    return await _store(registry, context, stored, new, value, allocations)


def _without_versions(raw: Tree, old: Tree, new: Tree) -> Tree:
    """Return the new object, with the old times of its managers if nothing else is different; drop all resourceVersions."""
    for tree in (old, raw, new):
        tree["metadata"].pop("resourceVersion", None)
    return with_old_times(old, new)


def _encode(
    registry: Registry, context: RequestContext, tree: Tree, stored: Tree | None
) -> tuple[Tree, bytes] | None:
    """Return an object as it is stored, and its text; None if it is the same as the stored one."""
    if tree == stored:
        return None
    value = encoder(context.resource, context.work.bytes)(tree)
    if context.resource.custom or value.find(EMPTY_LIST) < 0:
        return tree, value
    tree, value = without_empty_lists(registry, registry.admitted_row(context.resource), tree, value)
    return None if tree == stored else (tree, value)


def _named_key(registry: Registry, key: bytes, options: WriteOptions) -> bytes:
    """Return a key as errors show it: for a dry run, without the prefix of the store."""
    return key.removeprefix(registry.layout.root[:-1]) if options.dry_run else key


def _check_uid(context: RequestContext, uid: str, present: str, key: bytes) -> None:
    """Refuse to change an object with another UID."""
    if uid and uid != present:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {present}"
        text = (
            f"StorageError: invalid object, Code: 4, Key: {key.decode()}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: {problem}"
        )
        raise status.conflict(context.resource.group_resource, context.name, text)


def _check_version(registry: Registry, context: RequestContext, new: Tree, old: Tree) -> None:
    """Refuse to change another resourceVersion than the client's; set the old one, which rules and webhooks get."""
    version = metadata.parse_resource_version(new["metadata"].get("resourceVersion", ""))
    if not version:
        if not registry.scheme.strategy(context.resource).unconditional_update:
            raise _unconditional(registry, context)
    elif version != int(old["metadata"]["resourceVersion"]):
        raise status.conflict(context.resource.group_resource, context.name, MODIFIED)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]


def _unconditional(registry: Registry, context: RequestContext) -> ApiError:
    resource = context.resource.group_resource
    path, value = ROOT.child("metadata", "resourceVersion"), registry.scheme.rules.no_version
    field_error = errors.invalid(path, value, "must be specified for an update")
    return status.invalid(GroupKind(resource.group, resource.resource), context.name, [field_error])


async def _prepare(
    registry: Registry, context: RequestContext, options: WriteOptions, new: Tree, old: Tree
) -> tuple[Tree, Allocations]:
    """Admit, prepare and validate an updated object; return it with its allocations."""
    resource = registry.admitted_row(context.resource)
    attributes = AdmissionAttributes(
        operation=Operation.UPDATE,
        context=context,
        name=context.name,
        object=new,
        old=old,
        dry_run=options.dry_run,
    )
    await registry.admission.mutate(registry, attributes)
    assert attributes.object is not None
    new = metadata.without_duplicate_owners(attributes.object, context, when=metadata.AFTER_ADMISSION)
    _check_version(registry, context, new, old)
    new = attributes.object = await registry.run(context, _prepare_update, registry, context, new, old)
    allocations = await registry.allocators.allocate(registry, resource, new, old, dry_run=options.dry_run)
    await registry.admission.authorize(registry, attributes)
    await registry.run(context, _check, registry, context, new, old)
    await registry.admission.validate(registry, attributes)
    return new, allocations


def _prepare_update(registry: Registry, context: RequestContext, new: Tree, old: Tree) -> Tree:
    """Return the new object with only those changes that this endpoint may make, and with the fields that the server sets."""
    strategy = registry.scheme.strategy(registry.admitted_row(context.resource))
    subresource = context.subresource.name if context.subresource else ""
    new = with_old_empty_lists(registry, context, new, old)
    new = _reset_fields(strategy, subresource, new, old)
    metadata.keep_immutable(new, old)
    has_dropped = strategy.counts_dropped and is_changed(new, old, strategy.generation)
    strategy.disabled.drop(new, old)
    if prepare := strategy.prepare_update.get(subresource):
        prepare(new, old, registry.request(context))
    if subresource != "status" and (
        has_dropped
        or is_changed(new, old, strategy.generation)
        or (strategy.empty_counts and _has_more_empty(registry, context, strategy, new))
    ):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def _has_more_empty(registry: Registry, context: RequestContext, strategy: Strategy, new: Tree) -> bool:
    """Return whether the client sent empty collections that are not stored."""
    schema = registry.scheme.schemas.kind(new["apiVersion"], new["kind"])
    counted = [path[0] for path in strategy.generation]
    return schema is not None and has_more_empty(context, schema, new, counted)


def _check(registry: Registry, context: RequestContext, new: Tree, old: Tree) -> None:
    """Refuse an invalid object, and normalize a valid one."""
    resource, subresource = (
        registry.admitted_row(context.resource),
        context.subresource.name if context.subresource else "",
    )
    if context.type_error is not None:
        raise context.type_error
    sent = with_empty_maps(context, new, registry.scheme.strategy(resource).emptiable)
    field_errors = registry.scheme.rules.check_update(context.resource, subresource, sent, old)
    if field_errors:
        for warning in registry.scheme.rules.warn_refused(context.resource, new, old):
            context.warn(warning)
    if field_errors and registry.scheme.conversion(context.resource) is None:

        def check(candidate: Tree) -> Sequence[FieldError]:
            return registry.scheme.rules.check_update(context.resource, subresource, candidate, old)

        field_errors = check_with_empty_collections(context, new, field_errors, check)
    if raw_fields := registry.scheme.strategy(resource).raw:
        field_errors = [*field_errors, *check_unchanged(context, raw_fields, new)]
    if field_errors:
        worded = registry.in_words_of_minor(resource.group_kind, field_errors)
        raise status.invalid(resource.group_kind, context.name, worded)
    for warning in registry.scheme.rules.warn_update(context.resource, subresource, new, old):
        context.warn(warning)
    registry.scheme.strategy(resource).canonicalize(new)


def _reset_fields(strategy: Strategy, subresource: str, new: Tree, old: Tree) -> Tree:
    """Return the new object with the fields that this endpoint may not write as in the old one."""
    only_paths = strategy.only.get(subresource)
    new = new if only_paths is None else apply_fields(new, old, only_paths)
    new = preserve_fields(new, old, strategy.resets.get(subresource, ()))
    return new | {"metadata": dict(new["metadata"])}


async def _store(
    registry: Registry,
    context: RequestContext,
    stored: StoredObject,
    new: Tree,
    value: bytes,
    allocations: Allocations,
) -> ObjectResult | None:
    """Replace the stored object by the new one; return None if it is not the newest, or if an allocation failed."""
    key = stored.key
    ended = _is_ended(registry.scheme.strategy(context.resource), new)
    if ended:
        allocations = await registry.allocators.allocate(registry, context.resource, None, stored.tree())
    lease = await registry.allocators.lease(context.resource)
    operation = Delete(key=key) if ended else registry.put(key, value, lease=lease)
    seen = Compare(key=key, target=Target.MOD, operand=stored.revision)
    transaction = Txn(compare=(seen, *allocations.compare), then=(operation, *allocations.then))
    try:
        result = await registry.kv.txn(transaction)
    except TooLarge:
        smaller = await registry.run(context, metadata.without_managers, registry, context, value)
        if smaller is None:
            raise
        return await _store(registry, context, stored, new, smaller, allocations)
    if not result.succeeded:
        return None
    return ObjectResult(stored=StoredObject(key, value, stored.revision if ended else result.revision))


def _is_ended(strategy: Strategy, tree: Tree) -> bool:
    """Return whether an object that is being deleted waits for nothing any more."""
    meta = tree["metadata"]
    if "deletionTimestamp" not in meta or meta.get("deletionGracePeriodSeconds", 0):
        return False
    return not strategy.pending(tree)
