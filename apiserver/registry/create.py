"""Create: a body becomes a stored object with a name, a UID and a creationTimestamp."""

import itertools
from collections.abc import Sequence

import orjson

from mockube.apimachinery import gotext, json_decode, meta, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.names import generate_name
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.strategy import MAIN, preserve_fields
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
    to_storage,
    to_stored,
    without_empty_lists,
)
from mockube.apiserver.registry.registry import Claims, CorruptObject, Registry
from mockube.apiserver.registry.sent_fields import canonical_with, check_with_empty_collections, sent_text
from mockube.apiserver.storage.stored import Stored, encoder
from mockube.apiserver.wire.parse import check_format
from mockube.etcd.errors import TooLarge
from mockube.etcd.kv import Compare, Range, RangeResult, Target, Txn

_IS_ENDING = "object is being deleted: "
MAX_NAMES = 8
"""The number of generated names that are tried before AlreadyExists is returned."""


async def create(registry: Registry, call: Call) -> ObjectResult:
    check_format(call.body.media_type)
    options = write_options(call, "CreateOptions")
    tree = await registry.begin(call, read_object, registry, call, options)
    metadata.clear_system_fields(tree)
    tree = metadata.without_duplicate_owners(tree, call)
    return await create_tree(registry, call, tree, options)


def _is_revision(text: str) -> bool:
    """Return whether a resourceVersion is refused: upstream ignores 0, and texts that are not numbers."""
    if not text:
        return False
    try:
        return bool(gotext.parse_uint(text))
    except gotext.NumberError:
        return False


async def create_tree(
    registry: Registry, call: Call, tree: Tree, options: WriteOptions, *, manage: bool = True
) -> ObjectResult:
    """Create an object from a tree in stored form: for a create, and for an update or apply of a missing object."""
    metadata.set_system_fields(tree, call, now=registry.clock.now(), random=registry.random)
    tree = await registry.worker.run(call.size, _to_stored, registry, call, tree, options if manage else None)
    name = metadata.ensure_metadata(tree).get("name", "")
    attributes = Attributes(
        operation=Operation.CREATE, call=call, name=name, object=tree, dry_run=options.dry_run
    )
    if call.resource.terminating:
        problem = "create not allowed while custom resource definition is terminating"
        raise status.forbidden(call.resource.group_resource, name, problem)
    await registry.admission.mutate(registry, attributes)
    assert attributes.object is not None
    attributes.object = metadata.without_duplicate_owners(
        attributes.object, call, when=metadata.AFTER_ADMISSION
    )
    return await _create(
        registry, attributes, "" if name else metadata.ensure_metadata(tree).get("generateName", "")
    )


def _to_stored(registry: Registry, call: Call, tree: Tree, options: WriteOptions | None) -> Tree:
    """Return the tree in the version in which it is admitted, with its first manager if there are options."""
    if options is not None:
        tree = metadata.manage_new(registry, call, tree, options)
    conversion = registry.scheme.conversion(call.resource)
    return tree if conversion is None else to_stored(registry, conversion, tree)


async def _create(registry: Registry, attributes: Attributes, base: str) -> ObjectResult:
    """Create an object with its name, or with a generated one; retry if the generated name or a claim is in use."""
    assert attributes.object is not None
    tree, row = attributes.object, registry.stored_row(attributes.resource)
    may_repeat = bool(base) or registry.allocations.may_claim(row)
    size, run = attributes.call.size, registry.worker.run
    untouched = await run(size, orjson.dumps, tree) if may_repeat else b""
    for attempt in itertools.count(1):
        if base:
            has_suffix = registry.scheme.strategy(row).generates_suffixes
            metadata.ensure_metadata(tree)["name"] = (
                generate_name(base, registry.random) if has_suffix else base
            )
        try:
            answer = await _create_named(registry, attributes, tree)
        except status.AlreadyExists as error:
            if attempt == MAX_NAMES or not base:
                raise _name_conflict(attributes, tree, error) from error
            answer = None
        if answer is not None:
            return answer
        tree = await run(size, json_decode.decode, untouched)
    raise AssertionError("the loop above ends by itself")


def _name_conflict(attributes: Attributes, tree: Tree, error: status.AlreadyExists) -> status.AlreadyExists:
    """Return the error for a name that is in use. It is another one if the object has a generateName."""
    of_object = metadata.ensure_metadata(tree)
    if not of_object.get("generateName"):
        return error
    conflict = status.generate_name_conflict(attributes.resource.group_resource, of_object["name"], 1)
    is_ending = error.message.startswith(_IS_ENDING)
    return status.AlreadyExists(_IS_ENDING + conflict.message, conflict.details) if is_ending else conflict


async def _create_named(registry: Registry, attributes: Attributes, tree: Tree) -> ObjectResult | None:
    """Prepare, check and store an object; None if a claim failed."""
    call, run = attributes.call, registry.worker.run
    resource, size = registry.stored_row(attributes.resource), call.size
    tree = await run(size, _prepare, registry, attributes, resource, tree)
    claims = await registry.allocations.claims(registry, resource, tree, None, dry_run=attributes.dry_run)
    await run(size, _check, registry, attributes, resource, tree)
    attributes.name = metadata.ensure_metadata(tree).get("name", "")
    await registry.admission.validate(registry, attributes)
    to_store = await to_storage(registry, call, tree) if resource.custom else tree
    value = await run(size, encoder(resource, call.bytes), to_store)
    if value.find(EMPTY_LIST) >= 0 and not resource.custom:
        tree, value = await run(size, without_empty_lists, registry, resource, tree, value)
    if raw := registry.scheme.strategy(resource).raw:
        texts = {name: sent_text(call, name, tree) for name in raw}
        value = canonical_with(tree, texts)
    conversion = registry.scheme.conversion(attributes.resource)
    if conversion is not None and conversion.remote is not None:
        tree = to_store  # a dry run calls the webhook again as well
    elif attributes.dry_run:
        tree = await dry_run_result(registry, call, tree, to_store)
    try:
        return await _insert(registry, attributes, tree, value, claims)
    except TooLarge:
        smaller = await run(size, metadata.without_managers, registry, call, value)
        if smaller is None:
            raise
        return await _insert(registry, attributes, tree, smaller, claims)


def _prepare(registry: Registry, attributes: Attributes, resource: Resource, tree: Tree) -> Tree:
    strategy = registry.scheme.strategy(resource)
    empty = metadata.field_manager(registry, resource, MAIN).empty
    tree = attributes.object = preserve_fields(tree, empty, strategy.cleared)
    if strategy.first_generation:
        metadata.ensure_metadata(tree)["generation"] = strategy.first_generation
    strategy.disabled.drop(tree, None)
    strategy.prepare_create(tree, registry.request(attributes.call))
    return tree


def _check(registry: Registry, attributes: Attributes, resource: Resource, tree: Tree) -> None:
    """Refuse an invalid object, and normalize a valid one."""
    call = attributes.call
    if call.type_error is not None:
        raise call.type_error
    wrong = registry.scheme.rules.check_create(attributes.resource, tree)
    if wrong:
        if registry.scheme.conversion(attributes.resource) is None:

            def check(tree: Tree) -> Sequence[FieldError]:
                registry.scheme.strategy(resource).disabled.drop(tree, None)
                return registry.scheme.rules.check_create(attributes.resource, tree)

            wrong = check_with_empty_collections(call, tree, wrong, check)
        raise status.invalid(resource.group_kind, metadata.ensure_metadata(tree).get("name", ""), wrong)
    for warning in registry.scheme.rules.warn_create(attributes.resource, tree):
        call.warn(warning)
    registry.scheme.strategy(resource).canonicalize(tree)


async def _insert(
    registry: Registry, attributes: Attributes, tree: Tree, value: bytes, claims: Claims
) -> ObjectResult | None:
    """Store an object unless its key exists; a dry run only checks that. None if a claim failed."""
    resource, namespace, name = (
        attributes.resource,
        attributes.namespace,
        metadata.ensure_metadata(tree)["name"],
    )
    if attributes.dry_run:
        if (present := await registry.find(resource, namespace, name)) is not None:
            raise _already_exists(resource, name, present)
        return ObjectResult(code=201, tree=tree)
    if _is_revision(metadata.ensure_metadata(tree).get("resourceVersion", "")):
        raise ApiError("resourceVersion should not be set on objects to be created")
    key = registry.layout.object(resource, namespace, name)
    transaction = Txn(
        compare=(Compare(key=key, target=Target.MOD, operand=0), *claims.compare),
        then=(registry.put(key, value, lease=await registry.allocations.lease(resource)), *claims.then),
        otherwise=(Range(key=key, count_only=True),),
    )
    result = await registry.kv.txn(transaction)
    if result.succeeded:
        return ObjectResult(code=201, stored=Stored(key, value, result.revision))
    range_result = result.results[0]
    assert isinstance(range_result, RangeResult)
    if range_result.count:
        raise _already_exists(resource, name, await _find_readable(registry, attributes, name))
    return None


async def _find_readable(registry: Registry, attributes: Attributes, name: str) -> Stored | None:
    try:
        return await registry.find(attributes.resource, attributes.namespace, name)
    except CorruptObject:
        return None


def _already_exists(resource: Resource, name: str, present: Stored | None) -> status.AlreadyExists:
    error = status.already_exists(resource.group_resource, name)
    if (
        present is None
        or b'"deletionTimestamp":' not in present.value
        or not meta.is_deleting(present.tree())
    ):
        return error
    return status.AlreadyExists(_IS_ENDING + error.message, error.details)
