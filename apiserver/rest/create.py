"""Create: a body becomes an object with a name, a uid and a beginning."""

import itertools

import orjson

from apimachinery import status
from apimachinery.status import ApiError
from apiserver.resources.strategy import MAIN
from apiserver.rest import managed, metadata
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend, Claims
from apiserver.rest.body import read_object
from apiserver.rest.call import Call, ObjectAnswer
from apiserver.rest.convert import to_stored
from apiserver.rest.options import WriteOptions, write_options
from apiserver.rest.take import keep_paths
from apiserver.storage.stored import Stored, Tree, canonical
from etcd.kv import Compare, Put, Range, RangeResult, Target, Txn

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
    tree = to_stored(backend, call.resource, tree)
    name = metadata.of(tree).get("name", "")
    attributes = Attributes(
        operation=Operation.CREATE, call=call, name=name, object=tree, dry_run=options.dry_run
    )
    await backend.admission.mutate(backend, attributes)
    return await _create(backend, attributes, "" if name else metadata.of(tree).get("generateName", ""))


async def _create(backend: Backend, attributes: Attributes, base: str) -> ObjectAnswer:
    """Create under its name, or under one generated; again if what was generated or claimed is somebody else's."""
    tree = attributes.object
    assert tree is not None
    may_repeat = bool(base) or backend.may_claim(backend.stored_row(attributes.resource))
    untouched = orjson.dumps(tree) if may_repeat else b""
    for attempt in itertools.count(1):
        if base:
            metadata.of(tree)["name"] = metadata.generated_name(base, backend.chance)
        try:
            answer = await _create_named(backend, attributes, tree)
        except status.AlreadyExists as error:
            if not base:
                raise
            if attempt == MAX_NAMES:
                name = metadata.of(tree)["name"]
                raise status.generate_name_conflict(attributes.resource.group_resource, name, 1) from error
            answer = None
        if answer is not None:
            return answer
        tree = orjson.loads(untouched)
    raise AssertionError("the loop above ends by itself")


async def _create_named(backend: Backend, attributes: Attributes, tree: Tree) -> ObjectAnswer | None:
    """Prepare, check and store an object; None if it claimed what somebody else got first."""
    call, resource = attributes.call, backend.stored_row(attributes.resource)
    strategy, name = backend.strategy(resource), metadata.of(tree).get("name", "")
    empty = managed.field_manager(backend, resource, MAIN).empty
    tree = attributes.object = keep_paths(tree, empty, strategy.cleared)
    if strategy.first_generation:
        metadata.of(tree)["generation"] = strategy.first_generation
    strategy.prepare_create(tree, backend.request(call))
    claims = await backend.claims(resource, tree, None)
    wrong = backend.rules.check_create(attributes.resource, tree)
    if wrong:
        raise status.invalid(resource.group_kind, name, wrong)
    for warning in backend.rules.warn_create(attributes.resource, tree):
        call.warn(warning)
    strategy.canonicalize(tree)
    await backend.admission.validate(backend, attributes)
    return await _insert(backend, attributes, tree, claims)


async def _insert(
    backend: Backend, attributes: Attributes, tree: Tree, claims: Claims
) -> ObjectAnswer | None:
    """Store what is not there yet; a dry run only makes sure that it is not."""
    resource, namespace, name = attributes.resource, attributes.namespace, metadata.of(tree)["name"]
    if attributes.dry_run:
        if await backend.find(resource, namespace, name) is not None:
            raise status.already_exists(resource.group_resource, name)
        return ObjectAnswer(code=201, tree=tree)
    key, value = backend.layout.object(resource, namespace, name), canonical(tree)
    transaction = Txn(
        compare=(Compare(key=key, target=Target.MOD, operand=0), *claims.compare),
        then=(Put(key=key, value=value, lease=await backend.lease(resource)), *claims.then),
        otherwise=(Range(key=key, count_only=True),),
    )
    result = await backend.kv.txn(transaction)
    if result.succeeded:
        return ObjectAnswer(code=201, stored=Stored(key, value, result.revision))
    present = result.results[0]
    assert isinstance(present, RangeResult)
    if present.count:
        raise status.already_exists(resource.group_resource, name)
    return None
