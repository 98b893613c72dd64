"""Create: a body becomes a stored object with a name, a UID and a creationTimestamp."""

import itertools
from collections.abc import Sequence

import orjson

from mockube.apimachinery import gotext, meta, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.names import generate_name
from mockube.apimachinery.piecewise import decode_in_pieces
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.strategy import MAIN, preserve_fields
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.convert import dry_run_result, to_storage, to_stored
from mockube.apiserver.registry.empty_lists import EMPTY_LIST, without_empty_lists
from mockube.apiserver.registry.registry import Allocations, CorruptObject, Registry
from mockube.apiserver.registry.request_context import (
    AdmissionAttributes,
    ObjectResult,
    Operation,
    RequestContext,
    WriteOptions,
    write_options,
)
from mockube.apiserver.registry.sent_fields import canonical_with, check_with_empty_collections, sent_text
from mockube.apiserver.storage.stored_object import StoredObject, encoder
from mockube.apiserver.wire.parse import check_format
from mockube.etcd.errors import TooLarge
from mockube.etcd.kv import Compare, Range, RangeResult, Target, Txn

_BEING_DELETED_PREFIX = "object is being deleted: "
MAX_NAMES = 8
"""The number of generated names that are tried before AlreadyExists is returned."""


async def create(registry: Registry, context: RequestContext) -> ObjectResult:
    check_format(context.body.media_type)
    options = write_options(context, "CreateOptions")
    tree = await registry.begin(context, read_object, registry, context, options)
    metadata.clear_system_fields(tree)
    tree = metadata.without_duplicate_owners(tree, context)
    return await create_tree(registry, context, tree, options)


def _is_set_resource_version(text: str) -> bool:
    """Return whether a resourceVersion is set, which a create refuses: upstream ignores 0, and texts that are not numbers."""
    if not text:
        return False
    try:
        return bool(gotext.parse_uint(text))
    except gotext.NumberError:
        return False


async def create_on_update(
    registry: Registry, context: RequestContext, tree: Tree, options: WriteOptions, *, manage: bool = True
) -> ObjectResult:
    """Create the object that an update or apply has not found."""
    metadata.check_new(tree, context, dry_run=options.dry_run)
    return await create_tree(registry, context, tree, options, manage=manage)


async def create_tree(
    registry: Registry, context: RequestContext, tree: Tree, options: WriteOptions, *, manage: bool = True
) -> ObjectResult:
    """Create an object from a tree in stored form."""
    metadata.set_system_fields(tree, context, now=registry.clock.now(), random=registry.random)
    tree = await registry.run(context, _to_stored, registry, context, tree, options if manage else None)
    name = metadata.ensure_metadata(tree).get("name", "")
    attributes = AdmissionAttributes(
        operation=Operation.CREATE, context=context, name=name, object=tree, dry_run=options.dry_run
    )
    if context.resource.terminating:
        problem = "create not allowed while custom resource definition is terminating"
        raise status.forbidden(context.resource.group_resource, name, problem)
    await registry.admission.mutate(registry, attributes)
    assert attributes.object is not None
    attributes.object = metadata.without_duplicate_owners(
        attributes.object, context, when=metadata.AFTER_ADMISSION
    )
    object_meta = metadata.ensure_metadata(attributes.object)  # a webhook may have set the name
    return await _create(
        registry, attributes, "" if object_meta.get("name") else object_meta.get("generateName", "")
    )


def _to_stored(registry: Registry, context: RequestContext, tree: Tree, options: WriteOptions | None) -> Tree:
    """Return the tree in the version in which it is admitted, with its first manager if there are options."""
    if options is not None:
        tree = metadata.manage_new(registry, context, tree, options)
    if not registry.is_before("1.37"):
        metadata.clear_deletion(tree)
    conversion = registry.scheme.conversion(context.resource)
    return tree if conversion is None else to_stored(registry, conversion, tree)


async def _create(registry: Registry, attributes: AdmissionAttributes, name_prefix: str) -> ObjectResult:
    """Create an object with its name, or with a generated one; retry if that or an allocated value is in use."""
    assert attributes.object is not None
    tree, row = attributes.object, registry.admitted_row(attributes.resource)
    may_repeat = bool(name_prefix) or registry.allocators.has_allocator(row)
    original = await registry.run(attributes.context, orjson.dumps, tree) if may_repeat else b""
    for attempt in itertools.count(1):
        if name_prefix:
            has_suffix = registry.scheme.strategy(row).generates_suffixes
            metadata.ensure_metadata(tree)["name"] = (
                generate_name(name_prefix, registry.random) if has_suffix else name_prefix
            )
        try:
            answer = await _create_named(registry, attributes, tree)
        except status.AlreadyExists as error:
            if attempt == MAX_NAMES or not name_prefix:
                raise _name_conflict(attributes, tree, error) from error
            answer = None
        if answer is not None:
            return answer
        tree = await registry.run(attributes.context, decode_in_pieces, original)
    raise AssertionError("the loop above returns or raises")


def _name_conflict(
    attributes: AdmissionAttributes, tree: Tree, error: status.AlreadyExists
) -> status.AlreadyExists:
    """Return the error for a name that is in use; for a generated name, upstream has an error of its own."""
    object_meta = metadata.ensure_metadata(tree)
    if not object_meta.get("generateName"):
        return error
    conflict = status.generate_name_conflict(attributes.resource.group_resource, object_meta["name"], 1)
    is_being_deleted = error.message.startswith(_BEING_DELETED_PREFIX)
    return (
        status.AlreadyExists(_BEING_DELETED_PREFIX + conflict.message, conflict.details)
        if is_being_deleted
        else conflict
    )


async def _create_named(
    registry: Registry, attributes: AdmissionAttributes, tree: Tree
) -> ObjectResult | None:
    """Prepare, check and store an object; return None if an allocation failed."""
    context, resource = attributes.context, registry.admitted_row(attributes.resource)
    tree = await registry.run(context, _prepare, registry, attributes, resource, tree)
    allocations = await registry.allocators.allocate(
        registry, resource, tree, None, dry_run=attributes.dry_run
    )
    await registry.admission.authorize(registry, attributes)
    await registry.run(context, _check, registry, attributes, resource, tree)
    attributes.name = metadata.ensure_metadata(tree).get("name", "")
    if context.verb != "create":
        await _authorize(registry, context)
    await registry.admission.validate(registry, attributes)
    to_store = await to_storage(registry, context, tree) if resource.custom else tree
    value = await registry.run(context, encoder(resource, context.work.bytes), to_store)
    if value.find(EMPTY_LIST) >= 0 and not resource.custom:
        tree, value = await registry.run(context, without_empty_lists, registry, resource, tree, value)
    if raw := registry.scheme.strategy(resource).raw:
        texts = {name: sent_text(context, name, tree) for name in raw}
        value = canonical_with(tree, texts)
    conversion = registry.scheme.conversion(attributes.resource)
    if conversion is not None and conversion.remote is not None:
        tree = to_store  # a dry run calls the webhook again as well
    elif attributes.dry_run:
        tree = await dry_run_result(registry, context, tree, to_store)
    try:
        return await _insert(registry, attributes, tree, value, allocations)
    except TooLarge:
        smaller = await registry.run(context, metadata.without_managers, registry, context, value)
        if smaller is None:
            raise
        return await _insert(registry, attributes, tree, smaller, allocations)


async def _authorize(registry: Registry, context: RequestContext) -> None:
    """Require the verb create of an update or apply, which is authorized as such, before it creates a missing object."""
    resource, subresource = context.resource, context.subresource
    is_namespace = resource.group_resource == NAMESPACES  # a request for one is authorized in it
    attributes = Attributes(
        user=context.user,
        verb="create",
        group=resource.group,
        version=resource.version,
        resource=resource.name,
        subresource=subresource.name if subresource else "",
        namespace=context.name if is_namespace else context.namespace,
        name=context.name,
    )
    await registry.authorization.require(attributes)


def _prepare(registry: Registry, attributes: AdmissionAttributes, resource: Resource, tree: Tree) -> Tree:
    strategy = registry.scheme.strategy(resource)
    empty = metadata.field_manager(registry, resource, MAIN).empty
    tree = attributes.object = preserve_fields(tree, empty, strategy.cleared)
    if strategy.first_generation:
        metadata.ensure_metadata(tree)["generation"] = strategy.first_generation
    strategy.disabled.drop(tree, None)
    strategy.prepare_create(tree, registry.request(attributes.context))
    return tree


def _check(registry: Registry, attributes: AdmissionAttributes, resource: Resource, tree: Tree) -> None:
    """Refuse an invalid object, and normalize a valid one."""
    context = attributes.context
    if context.type_error is not None:
        raise context.type_error
    wrong = registry.scheme.rules.check_create(attributes.resource, tree)
    if wrong:
        if registry.scheme.conversion(attributes.resource) is None:

            def check(tree: Tree) -> Sequence[FieldError]:
                registry.scheme.strategy(resource).disabled.drop(tree, None)
                return registry.scheme.rules.check_create(attributes.resource, tree)

            wrong = check_with_empty_collections(context, tree, wrong, check)
        wrong = registry.in_words_of_minor(resource.group_kind, wrong)
        raise status.invalid(resource.group_kind, metadata.ensure_metadata(tree).get("name", ""), wrong)
    for warning in registry.scheme.rules.warn_create(attributes.resource, tree):
        context.warn(warning)
    registry.scheme.strategy(resource).canonicalize(tree)


async def _insert(
    registry: Registry, attributes: AdmissionAttributes, tree: Tree, value: bytes, allocations: Allocations
) -> ObjectResult | None:
    """Store an object unless its key exists; return None if an allocation failed. A dry run only looks for the key."""
    resource, namespace, name = (
        attributes.resource,
        attributes.namespace,
        metadata.ensure_metadata(tree)["name"],
    )
    if attributes.dry_run:
        if (present := await registry.find(resource, namespace, name)) is not None:
            raise _already_exists(resource, name, present)
        return ObjectResult(code=201, tree=tree)
    if _is_set_resource_version(metadata.ensure_metadata(tree).get("resourceVersion", "")):
        raise ApiError("resourceVersion should not be set on objects to be created")
    key = registry.layout.object(resource, namespace, name)
    transaction = Txn(
        compare=(Compare(key=key, target=Target.MOD, operand=0), *allocations.compare),
        then=(registry.put(key, value, lease=await registry.allocators.lease(resource)), *allocations.then),
        otherwise=(Range(key=key, count_only=True),),
    )
    result = await registry.kv.txn(transaction)
    if result.succeeded:
        return ObjectResult(code=201, stored=StoredObject(key, value, result.revision))
    range_result = result.results[0]
    assert isinstance(range_result, RangeResult)
    if range_result.count:
        raise _already_exists(resource, name, await _find_readable(registry, attributes, name))
    return None


async def _find_readable(
    registry: Registry, attributes: AdmissionAttributes, name: str
) -> StoredObject | None:
    try:
        return await registry.find(attributes.resource, attributes.namespace, name)
    except CorruptObject:
        return None


def _already_exists(resource: Resource, name: str, present: StoredObject | None) -> status.AlreadyExists:
    error = status.already_exists(resource.group_resource, name)
    if (
        present is None
        or b'"deletionTimestamp":' not in present.value
        or not meta.is_deleting(present.tree())
    ):
        return error
    return status.AlreadyExists(_BEING_DELETED_PREFIX + error.message, error.details)
