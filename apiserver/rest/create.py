"""Create: a body becomes an object with a name, a uid and a beginning."""

from apimachinery import status
from apimachinery.status import ApiError
from apiserver.resources.strategy import MAIN
from apiserver.rest import managed, metadata
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend
from apiserver.rest.body import read_object
from apiserver.rest.call import Call, ObjectAnswer
from apiserver.rest.options import WriteOptions, write_options
from apiserver.rest.take import keep_paths
from apiserver.storage.stored import Stored, Tree, canonical
from etcd.kv import Compare, Put, Target, Txn

MAX_NAMES = 8
"""Generated names tried before the client is told to try again."""


async def create(backend: Backend, call: Call) -> ObjectAnswer:
    options = write_options(call, "CreateOptions")
    tree = read_object(backend, call, options)
    if metadata.of(tree).get("resourceVersion", "") not in ("", "0"):
        raise ApiError("resourceVersion should not be set on objects to be created")
    return await create_tree(backend, call, tree, options)


async def create_tree(
    backend: Backend, call: Call, tree: Tree, options: WriteOptions, *, manage: bool = True
) -> ObjectAnswer:
    """Create from a tree in stored form: what create, and an update or apply of what is not there, share."""
    metadata.begin(tree, call, now=backend.clock.now(), chance=backend.chance)
    if manage:
        tree = managed.on_create(backend, call, tree, options)
    base = metadata.of(tree).get("generateName", "") if not metadata.of(tree).get("name") else ""
    for attempt in range(MAX_NAMES):
        if base:
            metadata.of(tree)["name"] = metadata.generated_name(base, backend.chance)
        try:
            copy = tree | {"metadata": dict(tree["metadata"])}
            return await _create_named(backend, call, copy, options)
        except status.AlreadyExists as error:
            if not base:
                raise
            if attempt == MAX_NAMES - 1:
                name = metadata.of(tree)["name"]
                raise status.generate_name_conflict(call.resource.group_resource, name, 1) from error
    raise AssertionError("the loop above always ends by itself")


async def _create_named(backend: Backend, call: Call, tree: Tree, options: WriteOptions) -> ObjectAnswer:
    resource, strategy = call.resource, backend.strategy(call.resource)
    name = metadata.of(tree).get("name", "")
    attributes = Attributes(
        operation=Operation.CREATE, call=call, name=name, object=tree, dry_run=options.dry_run
    )
    await backend.admission.mutate(backend, attributes)
    empty = managed.field_manager(backend, resource, MAIN).empty
    tree = attributes.object = keep_paths(tree, empty, strategy.resets[MAIN])
    if strategy.generation:
        metadata.of(tree)["generation"] = 1
    strategy.prepare_create(tree)
    wrong = backend.rules.check_create(resource, tree)
    if wrong:
        raise status.invalid(resource.group_kind, name, wrong)
    await backend.admission.validate(backend, attributes)
    stored = await _insert(backend, call, tree, options)
    return ObjectAnswer(code=201, stored=stored) if stored else ObjectAnswer(code=201, tree=tree)


async def _insert(backend: Backend, call: Call, tree: Tree, options: WriteOptions) -> Stored | None:
    """Store what is not there yet; a dry run only makes sure that it is not."""
    name = metadata.of(tree)["name"]
    key = backend.layout.object(call.resource, call.namespace, name)
    if options.dry_run:
        if await backend.find(call.resource, call.namespace, name) is not None:
            raise status.already_exists(call.resource.group_resource, name)
        return None
    value = canonical(tree)
    absent = Compare(key=key, target=Target.MOD, operand=0)
    answer = await backend.kv.txn(Txn(compare=(absent,), then=(Put(key=key, value=value),)))
    if not answer.succeeded:
        raise status.already_exists(call.resource.group_resource, name)
    return Stored(key, value, answer.revision)
