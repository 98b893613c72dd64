"""The stages of a write that creates or changes a stored object, in order, whatever the verb.

Every verb makes a `Write` and runs these stages: `create`, `update`, `patch` (four types, of which `apply` is one) and the
subresources. The tuples at the end are the whole order. A change runs all three of them, again if another write came
between; a creation runs the second once, and the third for each name that it tries. `deletion` has stages of its own.
"""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import errors, gotext, meta, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import NAMESPACES, GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.strategy import MAIN, Strategy, apply_fields, is_changed, preserve_fields
from mockube.apiserver.patch.apply.managers import with_old_times
from mockube.apiserver.storage.stored_object import StoredObject, encoder
from mockube.etcd.errors import TooLarge
from mockube.etcd.kv import Compare, Delete, Range, RangeResult, Target, Txn

from . import metadata, sent_fields
from .convert import as_read_after_store, convert_locally, to_stored, undecodable
from .empty_lists import EMPTY_LIST, with_old_empty_lists, without_empty_lists
from .registry import CorruptObject
from .request_context import AdmissionAttributes, ObjectResult, Operation
from .write import Write

BEING_DELETED: Final = "object is being deleted: "
"""The start of the error for the name of an object that is being deleted."""
MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


# --- 1. the old object, if there is one


def read_old(write: Write) -> None:
    """Decode the stored object; refuse to change one with another UID than the client's."""
    assert write.stored is not None
    write.stored_tree = write.stored.tree()
    check_uid(write, write.stored_tree["metadata"]["uid"], write.stored.key)


def check_uid(write: Write, present: str, key: bytes) -> None:
    if write.uid in ("", present):
        return
    if write.options.dry_run:  # errors show its key without the prefix of the store
        key = key.removeprefix(write.registry.layout.root[:-1])
    problem = f"Precondition failed: UID in precondition: {write.uid}, UID in object meta: {present}"
    text = (
        f"StorageError: invalid object, Code: 4, Key: {key.decode()}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: {problem}"
    )
    raise status.conflict(write.context.resource.group_resource, write.context.name, text)


def convert_old(write: Write) -> None:
    """Convert the old object to the client's version, and to that in which updates are validated, if no webhook has to."""
    conversion = write.conversion
    write.old = write.client_old = write.stored_tree
    if conversion is None or conversion.remote is not None:
        return
    assert write.stored_tree is not None
    write.client_old = conversion.from_stored(write.stored_tree)
    if conversion.at_storage:
        write.old = write.client_old


async def convert_old_by_webhook(write: Write) -> None:
    if write.conversion is not None and write.conversion.remote is not None:
        assert write.stored is not None
        converting = write.conversion.remote.to_client_version([write.stored])
        (client_object,) = await undecodable(write.registry, write.stored, converting)
        write.old, write.client_old = client_object.tree(), client_object.tree()


# --- 2. the new object, as it is admitted


def decode(write: Write) -> None:
    """Make the new object, in the client's version, with its defaults and managers."""
    registry, context = write.registry, write.context
    if write.old is not None:
        assert write.change is not None
        assert write.client_old is not None
        write.new = write.change(write, write.client_old)
        return
    assert write.make is not None
    new = write.make(write)
    metadata.set_system_fields(new, context, now=registry.clock.now(), random=registry.random)
    if write.manages_new:
        new = metadata.manage_new(registry, context, new, write.options)
    if not registry.is_before("1.37"):
        metadata.clear_deletion(new)
    write.new = new


def convert(write: Write) -> None:
    """Convert the new object to the version in which it is admitted and validated."""
    if write.conversion is not None:
        write.new = to_stored(write.registry, write.conversion, write.new)
    if write.old is not None:
        write.new = write.new | {"metadata": dict(write.new["metadata"])}  # it may be the old one's


async def admit(write: Write) -> None:
    """Let mutating admission change the new object."""
    registry, context, is_new = write.registry, write.context, write.old is None
    name = metadata.ensure_metadata(write.new).get("name", "") if is_new else context.name
    _check_kind_remains(write, name)
    write.attributes = attributes = AdmissionAttributes(
        operation=Operation.CREATE if is_new else Operation.UPDATE,
        context=context,
        name=name,
        object=write.new,
        old=write.old,
        dry_run=write.options.dry_run,
        patched=write.patched,
    )
    await registry.admission.mutate(registry, attributes)
    _check_kind_remains(write, name)  # while a webhook was asked, its definition may have been deleted
    assert attributes.object is not None
    write.new = metadata.without_duplicate_owners(attributes.object, context, when=metadata.AFTER_ADMISSION)
    if write.old is not None:
        _check_version(write, write.old)


def _check_kind_remains(write: Write, name: str) -> None:
    """Refuse to write a custom object whose definition was deleted, and to create one while its definition is being deleted."""
    resource = write.context.resource
    if not resource.custom:
        return
    row = write.registry.rows.get(resource.group_resource)
    if row is None:
        raise status.not_found(resource.group_resource, name)
    if row.terminating and write.old is None:
        problem = "create not allowed while custom resource definition is terminating"
        raise status.forbidden(resource.group_resource, name, problem)


def _check_version(write: Write, old: Tree) -> None:
    """Refuse to change another resourceVersion than the client's; set the old one, which rules and webhooks get."""
    registry, resource, new_metadata = write.registry, write.context.resource, write.new["metadata"]
    version = metadata.parse_resource_version(new_metadata.get("resourceVersion", ""))
    if version and version != int(old["metadata"]["resourceVersion"]):
        raise status.conflict(resource.group_resource, write.context.name, MODIFIED)
    if not version and not registry.scheme.strategy(resource).unconditional_update:
        path, value = ROOT.child("metadata", "resourceVersion"), registry.scheme.rules.no_version
        field_error = errors.invalid(path, value, "must be specified for an update")
        raise status.invalid(GroupKind(resource.group, resource.name), write.context.name, [field_error])
    new_metadata["resourceVersion"] = old["metadata"]["resourceVersion"]


# --- 3. the new object, as it is stored


def prepare(write: Write) -> None:
    """Set the fields that the server sets, and undo changes that this endpoint may not make."""
    new = _prepare_new(write) if write.old is None else _prepare_changed(write, write.old)
    metadata.match_namespace(new, write.context)  # admission may have changed it
    write.new = write.attributes.object = new


def _prepare_new(write: Write) -> Tree:
    registry, strategy = write.registry, write.strategy
    empty = metadata.field_manager(registry, write.row, MAIN).empty
    new = preserve_fields(write.new, empty, strategy.cleared)
    if strategy.first_generation:
        metadata.ensure_metadata(new)["generation"] = strategy.first_generation
    strategy.disabled.drop(new, None)
    strategy.prepare_create(new, registry.request(write.context))
    return new


def _prepare_changed(write: Write, old: Tree) -> Tree:
    registry, context, strategy = write.registry, write.context, write.strategy
    subresource = write.subresource
    new = with_old_empty_lists(registry, context, write.new, old)
    new = _reset_fields(strategy, subresource, new, old)
    metadata.keep_immutable(new, old, dry_run=write.options.dry_run)
    has_dropped = strategy.counts_dropped and is_changed(new, old, strategy.generation)
    strategy.disabled.drop(new, old)
    if prepare_update := strategy.prepare_update.get(subresource):
        prepare_update(new, old, registry.request(context))
    if subresource != "status" and (
        has_dropped
        or is_changed(new, old, strategy.generation)
        or (strategy.empty_counts and _has_more_empty(write, new))
    ):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def _reset_fields(strategy: Strategy, subresource: str, new: Tree, old: Tree) -> Tree:
    """Return the new object with the fields that this endpoint may not write as in the old one."""
    only_paths = strategy.only.get(subresource)
    new = new if only_paths is None else apply_fields(new, old, only_paths)
    new = preserve_fields(new, old, strategy.resets.get(subresource, ()))
    return new | {"metadata": dict(new["metadata"])}


def _has_more_empty(write: Write, new: Tree) -> bool:
    """Return whether the client sent empty collections that are not stored."""
    schema = write.registry.scheme.schemas.kind(new["apiVersion"], new["kind"])
    counted = [path[0] for path in write.strategy.generation]
    return schema is not None and sent_fields.has_more_empty(write, schema, new, counted)


async def allocate(write: Write) -> None:
    """Allocate addresses and ports; the transaction that stores the object takes them."""
    registry = write.registry
    write.allocations = await registry.allocators.allocate(
        registry, write.row, write.new, write.old, dry_run=write.options.dry_run
    )


async def authorize(write: Write) -> None:
    """Require the rights that what was written needs, besides the right to write."""
    await write.registry.admission.authorize(write.registry, write.attributes)


def validate(write: Write) -> None:
    """Refuse an invalid object, and normalize a valid one."""
    if write.type_error is not None:
        raise write.type_error
    if write.old is None:
        _validate_new(write)
    else:
        _validate_changed(write, write.old)
    write.strategy.canonicalize(write.new)


def _validate_new(write: Write) -> None:
    context, rules = write.context, write.registry.scheme.rules
    sent = sent_fields.with_sent_empty(write, write.strategy.emptiable)
    field_errors = rules.check_create(context.resource, sent)
    if field_errors:
        if write.conversion is None:

            def check(candidate: Tree) -> Sequence[FieldError]:
                write.strategy.disabled.drop(candidate, None)
                return rules.check_create(context.resource, candidate)

            field_errors = sent_fields.check_with_empty_collections(write, field_errors, check)
        _refuse(write, metadata.ensure_metadata(write.new).get("name", ""), field_errors)
    for warning in rules.warn_create(context.resource, write.new):
        context.report.warn(warning)


def _validate_changed(write: Write, old: Tree) -> None:
    context, rules = write.context, write.registry.scheme.rules
    subresource = write.subresource
    sent = sent_fields.with_sent_empty(write, write.strategy.emptiable)
    sent = sent_fields.with_exact_times(write, sent, write.strategy.exact_times)
    field_errors = rules.check_update(context.resource, subresource, sent, old)
    if field_errors:
        for warning in rules.warn_refused(context.resource, write.new, old):
            context.report.warn(warning)
        if write.conversion is None:

            def check(candidate: Tree) -> Sequence[FieldError]:
                return rules.check_update(context.resource, subresource, candidate, old)

            field_errors = sent_fields.check_with_empty_collections(write, field_errors, check)
    if raw_fields := write.strategy.raw:
        field_errors = [*field_errors, *sent_fields.check_unchanged(write, raw_fields)]
    if field_errors:
        _refuse(write, context.name, field_errors)
    for warning in rules.warn_update(context.resource, subresource, write.new, old):
        context.report.warn(warning)


def _refuse(write: Write, name: str, field_errors: Sequence[FieldError]) -> None:
    kind = write.row.group_kind
    raise status.invalid(kind, name, write.registry.in_words_of_minor(kind, field_errors))


async def authorize_creation(write: Write) -> None:
    """Require the verb create of an update or apply, which is authorized as such, before it creates a missing object."""
    context, resource = write.context, write.context.resource
    if write.old is not None or context.verb == "create":
        return
    is_namespace = resource.group_resource == NAMESPACES  # a request for one is authorized in it
    namespace = context.name if is_namespace else context.namespace
    await write.registry.authorization.require(
        Attributes.of_row(context.user, "create", resource, namespace, context.name, write.subresource)
    )


async def admit_validated(write: Write) -> None:
    """Let validating admission refuse the object. It comes after validation, so that plugins get valid objects only."""
    if write.old is None:  # it may have a generated name by now
        write.attributes.name = metadata.ensure_metadata(write.new).get("name", "")
    await write.registry.admission.validate(write.registry, write.attributes)


def keep_old_times(write: Write) -> None:
    """Keep the old times of managers if nothing else was changed, so that the object is the stored one; drop versions."""
    old, stored_tree = write.old, write.stored_tree
    if old is None or stored_tree is None:
        return
    for tree in (old, stored_tree, write.new):
        tree["metadata"].pop("resourceVersion", None)
    write.new = with_old_times(old, write.new)


def convert_to_store(write: Write) -> None:
    """Convert a custom object to the stored version, unless a webhook has to; a built-in one is admitted in that version."""
    if not write.row.custom:
        write.to_store = write.new
    elif write.conversion is None or write.conversion.remote is None:
        write.to_store = convert_locally(write)


async def convert_by_webhook(write: Write) -> None:
    if write.conversion is not None and write.conversion.remote is not None:
        write.to_store = await write.conversion.remote.to_stored(write.new)


def encode(write: Write) -> None:
    """Encode the object; a changed object that is the same as the stored one is not stored again."""
    resource, tree = write.row, write.to_store
    is_same = tree == write.stored_tree
    if not is_same:
        write.value = encoder(resource, write.context.work.bytes)(tree)
        if not resource.custom and write.value.find(EMPTY_LIST) >= 0:
            tree, write.value = without_empty_lists(write.registry, resource, tree, write.value)
            is_same = tree == write.stored_tree
    if is_same:
        assert write.stored is not None
        write.value = write.stored.value
        if not _is_ended(write):  # one that waits for nothing is removed by any write, as upstream
            write.result = ObjectResult(stored=write.stored)
        return
    write.to_store = tree
    if not resource.custom:
        write.new = tree
    if raw := write.strategy.raw:
        stored = write.stored
        write.value = sent_fields.canonical_with(
            write.new,
            {
                name: sent_fields.sent_text(write, name)
                if stored is None
                else sent_fields.stored_text(stored.value, name)
                for name in raw
            },
        )


async def commit(write: Write) -> None:
    """Store the object, unless another write came between or an allocation is in use; a dry run only looks."""
    if write.options.dry_run:
        write.result = await _dry_run(write)
        return
    try:
        write.result = await _store(write)
    except TooLarge:
        registry, context = write.registry, write.context
        smaller = await registry.run(context, metadata.without_managers, registry, context, write.value)
        if smaller is None:
            raise
        write.value = smaller
        write.result = await _store(write)


async def _dry_run(write: Write) -> ObjectResult:
    registry, resource, stored = write.registry, write.context.resource, write.stored
    if stored is not None:
        new = await as_read_after_store(write)
        new["metadata"]["resourceVersion"] = str(stored.revision)
        return ObjectResult(tree=new)
    # The answer of a creation is converted for the client later, by the webhook once more.
    is_remote = write.conversion is not None and write.conversion.remote is not None
    new = write.to_store if is_remote else await as_read_after_store(write)
    name = metadata.ensure_metadata(new)["name"]
    try:
        present = await registry.find(resource, write.context.namespace, name)
    except CorruptObject:
        raise _already_exists(resource, name, None) from None
    if present is not None:
        raise _already_exists(resource, name, present)
    return ObjectResult(code=201, tree=new)


async def _store(write: Write) -> ObjectResult | None:
    """Store the object if it was not changed since it was read, or created; delete one that waited for this write to go."""
    registry, resource, stored = write.registry, write.context.resource, write.stored
    allocations = write.allocations
    name = write.to_store["metadata"]["name"]
    _check_kind_remains(write, name)
    if stored is None:
        if _is_set_resource_version(write.to_store["metadata"].get("resourceVersion", "")):
            raise ApiError("resourceVersion should not be set on objects to be created")
        key, revision, is_ended = registry.layout.object(resource, write.context.namespace, name), 0, False
    else:
        key, revision = stored.key, stored.revision
        is_ended = _is_ended(write)
    if stored is not None and is_ended:
        allocations = await registry.allocators.allocate(registry, resource, None, stored.tree())
    lease = await registry.allocators.lease(resource)
    operation = Delete(key=key) if is_ended else registry.put(key, write.value, lease=lease)
    transaction = Txn(
        compare=(Compare(key=key, target=Target.MOD, operand=revision), *allocations.compare),
        then=(operation, *allocations.then),
        otherwise=() if stored is not None else (Range(key=key, count_only=True),),
    )
    manager = metadata.manager_name(write.context, write.options)
    result = await registry.commit(transaction, write.context.author(manager))
    if result.succeeded:
        return ObjectResult(
            code=200 if stored is not None else 201,
            stored=StoredObject(key, write.value, revision if is_ended else result.revision),
        )
    if stored is None:
        range_result = result.results[0]
        assert isinstance(range_result, RangeResult)
        if range_result.count:
            raise _already_exists(resource, name, await _find_readable(write, name))
    return None


def _is_ended(write: Write) -> bool:
    """Return whether the new object is being deleted, and waits for nothing any more."""
    object_meta = write.new["metadata"]
    if "deletionTimestamp" not in object_meta or object_meta.get("deletionGracePeriodSeconds", 0):
        return False
    return not write.registry.scheme.strategy(write.context.resource).pending(write.new)


def _is_set_resource_version(text: str) -> bool:
    """Return whether a resourceVersion is set, which a create refuses: upstream ignores 0, and texts that are not numbers."""
    if not text:
        return False
    try:
        return bool(gotext.parse_uint(text))
    except gotext.NumberError:
        return False


async def _find_readable(write: Write, name: str) -> StoredObject | None:
    try:
        return await write.registry.find(write.context.resource, write.context.namespace, name)
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
    return status.AlreadyExists(BEING_DELETED + error.message, error.details)


READING: Final = (read_old, convert_old, convert_old_by_webhook)
ADMISSION: Final = (decode, convert, admit)
STORAGE: Final = (
    prepare,
    allocate,
    authorize,
    validate,
    authorize_creation,
    admit_validated,
    keep_old_times,
    convert_to_store,
    convert_by_webhook,
    encode,
    commit,
)
