"""Update: an object is replaced, whole or through a subresource, if it was not changed meanwhile.

`change` is the read-modify-write loop of updates, patches and subresources. It is repeated if another write came between,
which fails if the client sent the resourceVersion that it had read.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import orjson

from mockube.apimachinery import errors, json_decode, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.patch.apply.managers import with_old_times
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.strategy import Strategy, apply_fields, is_changed, preserve_fields
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.call import (
    Attributes,
    Call,
    ObjectResult,
    Operation,
    WriteOptions,
    write_options,
)
from mockube.apiserver.registry.convert import (
    EMPTY_LIST,
    dry_run_result,
    old_object,
    to_storage,
    to_stored,
    with_conversions,
    without_empty_lists,
)
from mockube.apiserver.registry.create import create_tree
from mockube.apiserver.registry.registry import Claims, Registry
from mockube.apiserver.registry.sent_fields import (
    canonical_with,
    check_unchanged,
    check_with_empty_collections,
    has_more_empty,
    stored_text,
)
from mockube.apiserver.storage.stored import Stored, encoder
from mockube.etcd.errors import TooLarge
from mockube.etcd.kv import Compare, Delete, Target, Txn

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

Transform: TypeAlias = Callable[[Tree], Awaitable[Tree]]
"""Returns the new object for the old one, which it must not change."""


async def update(registry: Registry, call: Call) -> ObjectResult:
    options = write_options(call, "UpdateOptions")
    sent = await registry.begin(call, read_object, registry, call, options)
    metadata.match_namespace(sent, call)
    metadata.match_name(sent, call.name)
    sent = metadata.without_duplicate_owners(sent, call)
    uid = sent["metadata"].get("uid", "")
    untouched = await registry.worker.run(call.size, orjson.dumps, sent)
    first = [sent]

    def sent_tree() -> Tree:
        tree: Tree = first.pop() if first else json_decode.decode(untouched)
        return tree

    def new_tree(old: Tree) -> Tree:
        return metadata.manage_change(registry, call, sent_tree(), old, options)

    async def replace(old: Tree) -> Tree:
        return await registry.worker.run(call.size, new_tree, old)

    async def create_missing() -> ObjectResult:
        tree = await registry.worker.run(call.size, sent_tree)
        key = registry.layout.object(call.resource, call.namespace, call.name)
        _check_uid(call, uid, "", _named_key(registry, key, options))
        metadata.check_new(tree, call, dry_run=options.dry_run)
        return await create_tree(registry, call, tree, options)

    may_create = registry.scheme.strategy(call.resource).create_on_update
    create = create_missing if may_create else None
    return await change(registry, call, options, replace, uid=uid, create=create)


async def change(
    registry: Registry,
    call: Call,
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
        stored = await registry.find(call.resource, call.namespace, call.name)
        if stored is None:
            answer = await _create_missing(registry, call, create)
        else:
            answer = await _replace(registry, call, options, transform, stored, uid)
        if answer is not None:
            return answer


async def _create_missing(
    registry: Registry, call: Call, create: Callable[[], Awaitable[ObjectResult]] | None
) -> ObjectResult | None:
    """Create an object that does not exist; return None if another request created it at the same time."""
    if create is None:
        raise status.not_found(call.resource.group_resource, call.name)
    try:
        return await create()
    except status.AlreadyExists:
        if await registry.find(call.resource, call.namespace, call.name) is None:
            raise  # by a webhook, for example
        return None


async def _replace(
    registry: Registry, call: Call, options: WriteOptions, transform: Transform, stored: Stored, uid: str
) -> ObjectResult | None:
    """Replace an object by the result of `transform`; return None if another write may have changed it meanwhile."""
    conversion = registry.scheme.conversion(call.resource)
    call.measure(len(stored.value))
    if call.needs_memory_reservation and await call.reserve():
        return None  # others may have changed it
    call.live = stored
    run, size = registry.worker.run, call.size
    raw = await run(size, stored.tree)
    _check_uid(call, uid, raw["metadata"]["uid"], _named_key(registry, stored.key, options))
    old, client_object = await old_object(registry, call, stored, raw)
    new = await with_conversions(call, partial(transform, client_object))
    if conversion is not None:
        new = await run(size, to_stored, registry, conversion, new)
    new = new | {"metadata": dict(new["metadata"])}  # it may be the old one's
    new, claims = await _prepare(registry, call, options, new, old)
    new = await run(size, _without_versions, raw, old, new)
    to_store = await to_storage(registry, call, new) if call.resource.custom else new
    encoded = await run(size, _encode, registry, call, to_store, None if stored.is_outdated else raw)
    if encoded is None:
        return ObjectResult(stored=stored)
    to_store, value = encoded
    if not call.resource.custom:
        new = to_store
    if raw_fields := registry.scheme.strategy(call.resource).raw:
        value = canonical_with(new, {name: stored_text(stored.value, name) for name in raw_fields})
    if options.dry_run:
        new = await dry_run_result(registry, call, new, to_store)
        new["metadata"]["resourceVersion"] = str(stored.revision)
        return ObjectResult(tree=new)
    return await _store(registry, call, stored, new, value, claims)


def _without_versions(raw: Tree, old: Tree, new: Tree) -> Tree:
    """Return the new object, with the old times of its managers if nothing else is different; drop all resourceVersions."""
    for tree in (old, raw, new):
        tree["metadata"].pop("resourceVersion", None)
    return with_old_times(old, new)


def _encode(registry: Registry, call: Call, tree: Tree, stored: Tree | None) -> tuple[Tree, bytes] | None:
    """Return an object as it is stored, and its text; None if it is the same as the stored one."""
    if tree == stored:
        return None
    value = encoder(call.resource, call.bytes)(tree)
    if call.resource.custom or value.find(EMPTY_LIST) < 0:
        return tree, value
    tree, value = without_empty_lists(registry, registry.stored_row(call.resource), tree, value)
    return None if tree == stored else (tree, value)


def _named_key(registry: Registry, key: bytes, options: WriteOptions) -> bytes:
    """Return a key as errors show it: for a dry run, without the prefix of the store."""
    return key.removeprefix(registry.layout.root[:-1]) if options.dry_run else key


def _check_uid(call: Call, uid: str, present: str, key: bytes) -> None:
    """Refuse to change an object with another UID."""
    if uid and uid != present:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {present}"
        text = (
            f"StorageError: invalid object, Code: 4, Key: {key.decode()}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: {problem}"
        )
        raise status.conflict(call.resource.group_resource, call.name, text)


def _check_version(registry: Registry, call: Call, new: Tree, old: Tree) -> None:
    """Refuse to change another resourceVersion than the client's; set the old one, which rules and webhooks get."""
    version = metadata.parse_resource_version(new["metadata"].get("resourceVersion", ""))
    if not version:
        if not registry.scheme.strategy(call.resource).unconditional_update:
            raise _unconditional(registry, call)
    elif version != int(old["metadata"]["resourceVersion"]):
        raise status.conflict(call.resource.group_resource, call.name, MODIFIED)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]


def _unconditional(registry: Registry, call: Call) -> ApiError:
    resource = call.resource.group_resource
    path, value = ROOT.child("metadata", "resourceVersion"), registry.scheme.rules.no_version
    field_error = errors.invalid(path, value, "must be specified for an update")
    return status.invalid(GroupKind(resource.group, resource.resource), call.name, [field_error])


async def _prepare(
    registry: Registry, call: Call, options: WriteOptions, new: Tree, old: Tree
) -> tuple[Tree, Claims]:
    """Admit, prepare and validate an updated object; return it with its claims."""
    resource = registry.stored_row(call.resource)
    attributes = Attributes(
        operation=Operation.UPDATE, call=call, name=call.name, object=new, old=old, dry_run=options.dry_run
    )
    await registry.admission.mutate(registry, attributes)
    assert attributes.object is not None
    new = metadata.without_duplicate_owners(attributes.object, call, when=metadata.AFTER_ADMISSION)
    _check_version(registry, call, new, old)
    run = registry.worker.run
    new = attributes.object = await run(call.size, _prepare_update, registry, call, new, old)
    claims = await registry.allocations.claims(registry, resource, new, old, dry_run=options.dry_run)
    await run(call.size, _check, registry, call, new, old)
    await registry.admission.validate(registry, attributes)
    return new, claims


def _prepare_update(registry: Registry, call: Call, new: Tree, old: Tree) -> Tree:
    """Return the new object with only those changes that this endpoint may make, and with the fields that the server sets."""
    strategy = registry.scheme.strategy(registry.stored_row(call.resource))
    subresource = call.subresource.name if call.subresource else ""
    new = _reset_fields(strategy, subresource, new, old)
    metadata.keep_immutable(new, old)
    strategy.disabled.drop(new, old)
    if prepare := strategy.prepare_update.get(subresource):
        prepare(new, old, registry.request(call))
    if subresource != "status" and (
        is_changed(new, old, strategy.generation)
        or (strategy.empty_counts and _has_more_empty(registry, call, strategy, new))
    ):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def _has_more_empty(registry: Registry, call: Call, strategy: Strategy, new: Tree) -> bool:
    """Return whether the client sent empty collections that are not stored."""
    schema = registry.scheme.schemas.kind(new["apiVersion"], new["kind"])
    counted = [path[0] for path in strategy.generation]
    return schema is not None and has_more_empty(call, schema, new, counted)


def _check(registry: Registry, call: Call, new: Tree, old: Tree) -> None:
    """Refuse an invalid object, and normalize a valid one."""
    resource, subresource = (
        registry.stored_row(call.resource),
        call.subresource.name if call.subresource else "",
    )
    if call.type_error is not None:
        raise call.type_error
    field_errors = registry.scheme.rules.check_update(call.resource, subresource, new, old)
    if field_errors:
        for warning in registry.scheme.rules.warn_refused(call.resource, new, old):
            call.warn(warning)
    if field_errors and registry.scheme.conversion(call.resource) is None:

        def check(candidate: Tree) -> Sequence[FieldError]:
            return registry.scheme.rules.check_update(call.resource, subresource, candidate, old)

        field_errors = check_with_empty_collections(call, new, field_errors, check)
    if raw_fields := registry.scheme.strategy(resource).raw:
        field_errors = [*field_errors, *check_unchanged(call, raw_fields, new)]
    if field_errors:
        raise status.invalid(resource.group_kind, call.name, field_errors)
    for warning in registry.scheme.rules.warn_update(call.resource, subresource, new, old):
        call.warn(warning)
    registry.scheme.strategy(resource).canonicalize(new)


def _reset_fields(strategy: Strategy, subresource: str, new: Tree, old: Tree) -> Tree:
    """Return the new object with the fields that this endpoint may not write as in the old one."""
    only = strategy.only.get(subresource)
    new = new if only is None else apply_fields(new, old, only)
    new = preserve_fields(new, old, strategy.resets.get(subresource, ()))
    return new | {"metadata": dict(new["metadata"])}


async def _store(
    registry: Registry, call: Call, stored: Stored, new: Tree, value: bytes, claims: Claims
) -> ObjectResult | None:
    """Replace the stored object by the new one; None if the stored one is not the newest, or if a claim failed."""
    key = stored.key
    ended = _is_ended(registry.scheme.strategy(call.resource), new)
    if ended:
        claims = await registry.allocations.claims(registry, call.resource, None, stored.tree())
    lease = await registry.allocations.lease(call.resource)
    operation = Delete(key=key) if ended else registry.put(key, value, lease=lease)
    seen = Compare(key=key, target=Target.MOD, operand=stored.revision)
    transaction = Txn(compare=(seen, *claims.compare), then=(operation, *claims.then))
    try:
        result = await registry.kv.txn(transaction)
    except TooLarge:
        smaller = await registry.worker.run(call.size, metadata.without_managers, registry, call, value)
        if smaller is None:
            raise
        return await _store(registry, call, stored, new, smaller, claims)
    if not result.succeeded:
        return None
    return ObjectResult(stored=Stored(key, value, stored.revision if ended else result.revision))


def _is_ended(strategy: Strategy, tree: Tree) -> bool:
    """Return whether an object that is being deleted waits for nothing any more."""
    meta = tree["metadata"]
    if "deletionTimestamp" not in meta or meta.get("deletionGracePeriodSeconds", 0):
        return False
    return not strategy.pending(tree)
