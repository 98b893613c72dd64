"""Delete: at once, or marked and left to whoever has to finish with the object first.

An object waits if it has finalizers, which the propagation policy may add, or a grace period. Otherwise it goes.
"""

from datetime import datetime, timedelta

from apimachinery import status
from apimachinery.groups import GroupResource
from apimachinery.status import Details
from apiserver.resources.strategy import Strategy
from apiserver.rest import metadata
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, ListAnswer, ObjectAnswer
from apiserver.rest.deletion import FINALIZER_OF, DeleteOptions, check_preconditions, delete_options
from apiserver.rest.read import list_objects
from apiserver.storage.stored import Stored, Tree, canonical
from etcd.kv import Compare, Delete, Put, Target, Txn


async def delete(backend: Backend, call: Call) -> ObjectAnswer:
    return await _delete(backend, call, delete_options(backend, call))


async def delete_collection(backend: Backend, call: Call) -> ListAnswer:
    """Delete what a list would show; answers with what it was."""
    options = delete_options(backend, call)
    found = await list_objects(backend, call)
    for stored in found.items:
        name = stored.key.rpartition(b"/")[2].decode()
        namespace = stored.key.split(b"/")[-2].decode() if call.resource.namespaced else ""
        one = Call(
            verb="delete",
            resource=call.resource,
            namespace=namespace,
            name=name,
            user=call.user,
            query=call.query,
        )
        try:
            await _delete(backend, one, options)
        except status.NotFound:
            continue  # somebody else was quicker
    return found


async def _delete(backend: Backend, call: Call, options: DeleteOptions) -> ObjectAnswer:
    strategy = backend.strategy(call.resource)
    while True:
        stored = await backend.get(call.resource, call.namespace, call.name)
        old = stored.tree()
        attributes = Attributes(
            operation=Operation.DELETE,
            call=call,
            name=call.name,
            object=None,
            old=old,
            dry_run=options.dry_run,
        )
        await backend.admission.validate(backend, attributes)
        about = GroupResource(call.resource.group, call.resource.kind)
        check_preconditions(about, call.name, options, old["metadata"])
        marked = _mark(strategy, old, options, backend.clock.now())
        if marked is None:
            return ObjectAnswer(stored=stored)
        answer = await _carry_out(backend, call, options, stored, marked)
        if answer is not None:
            return answer


def _mark(strategy: Strategy, old: Tree, options: DeleteOptions, now: datetime) -> Tree | None:
    """The object as its deletion leaves it; None if it is being deleted already, and no sooner for this call."""
    meta = dict(old["metadata"])
    tree = old | {"metadata": meta}
    grace = strategy.grace(old, options.grace)
    left = meta.get("deletionGracePeriodSeconds", 0) if "deletionTimestamp" in meta else 0
    if grace is not None and left and (options.grace is None or options.grace >= left):
        return None
    _set_policy(meta, options.policy)
    if grace is None:
        if not strategy.pending(tree):
            return tree
        grace = 0
    if "deletionTimestamp" not in meta and meta.get("generation"):
        meta["generation"] += 1
    meta["deletionTimestamp"] = metadata.timestamp(now + timedelta(seconds=grace))
    meta["deletionGracePeriodSeconds"] = grace
    strategy.prepare_delete(tree)
    return tree


def _set_policy(meta: Tree, policy: str) -> None:
    """The finalizer that a propagation policy stands for, in place of any other's."""
    if not policy:
        return
    finalizers = [name for name in meta.get("finalizers", []) if name not in FINALIZER_OF.values()]
    if policy in FINALIZER_OF:
        finalizers.append(FINALIZER_OF[policy])
    meta["finalizers"] = finalizers
    if not finalizers:
        del meta["finalizers"]


async def _carry_out(
    backend: Backend, call: Call, options: DeleteOptions, stored: Stored, marked: Tree
) -> ObjectAnswer | None:
    """Store the mark, or the end; None if another write came between."""
    strategy, meta = backend.strategy(call.resource), marked["metadata"]
    waits = strategy.pending(marked) or meta.get("deletionGracePeriodSeconds", 0) > 0
    value, revision = canonical(marked), stored.revision
    if options.dry_run:
        return _answer(call, strategy, Stored(stored.key, value, revision), waits=waits)
    if value != stored.value:
        put = Put(key=stored.key, value=value)
        result = await backend.kv.txn(Txn(compare=(_unchanged(stored.key, revision),), then=(put,)))
        if not result.succeeded:
            return None
        revision = result.revision
    if not waits:
        gone = Delete(key=stored.key)
        result = await backend.kv.txn(Txn(compare=(_unchanged(stored.key, revision),), then=(gone,)))
        if not result.succeeded:
            return None
    return _answer(call, strategy, Stored(stored.key, value, revision), waits=waits)


def _unchanged(key: bytes, revision: int) -> Compare:
    return Compare(key=key, target=Target.MOD, operand=revision)


def _answer(call: Call, strategy: Strategy, last: Stored, *, waits: bool) -> ObjectAnswer:
    if waits or strategy.returns_deleted:
        return ObjectAnswer(stored=last)
    subject = call.resource.group_resource
    uid = last.tree()["metadata"]["uid"]
    details = Details(name=call.name, group=subject.group, kind=subject.resource, uid=uid)
    return ObjectAnswer(tree=status.success(details))
