"""Delete: at once, or marked and left to whoever has to finish with the object first.

An object waits if it has finalizers, which the propagation policy may add, or a grace period. Otherwise it goes.
"""

from datetime import datetime, timedelta

from apimachinery import status
from apimachinery.groups import GroupResource
from apimachinery.status import Details
from apimachinery.timestamps import format_time, parse_time
from apiserver.resources.strategy import UNSUPPORTED, Strategy
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, ListAnswer, ObjectAnswer
from apiserver.rest.deletion import FINALIZER_OF, DeleteOptions, check_preconditions, delete_options
from apiserver.rest.read import list_objects
from apiserver.storage.stored import Stored, Tree, canonical
from etcd.kv import Compare, Delete, Put, Target, Txn

_POLICY_FINALIZERS = frozenset(FINALIZER_OF.values())


async def delete(backend: Backend, call: Call) -> ObjectAnswer:
    return await delete_as(backend, call, _options(backend, call))


def _options(backend: Backend, call: Call) -> DeleteOptions:
    options = delete_options(backend, call)
    warning = backend.strategy(call.resource).dependents_warning
    if warning and not options.policy:
        call.warnings.append(warning)
    return options


async def delete_collection(backend: Backend, call: Call) -> ListAnswer:
    """Delete what a list would show; answers with what it was."""
    options = _options(backend, call)
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
            await delete_as(backend, one, options)
        except status.NotFound:
            continue  # somebody else was quicker
    return found


async def delete_as(backend: Backend, call: Call, options: DeleteOptions) -> ObjectAnswer:
    """Delete the object that a call is about, as its options say."""
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
        await backend.admission.mutate(backend, attributes)
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
    tree, going = old | {"metadata": meta}, "deletionTimestamp" in meta
    grace = strategy.grace(old, options.grace)
    if going and grace is not None:
        return _mark_sooner(tree, options.grace)
    _set_policy(meta, options.policy or _default_policy(strategy, meta))
    if grace is None:
        if not strategy.pending(tree):
            return tree
        grace = 0
    if not going:
        if meta.get("generation"):
            meta["generation"] += 1
        meta["deletionTimestamp"] = format_time(now + timedelta(seconds=grace))
        meta["deletionGracePeriodSeconds"] = grace
    strategy.prepare_delete(tree)
    return tree


def _mark_sooner(tree: Tree, asked: int | None) -> Tree | None:
    """A graceful deletion that goes on can be hastened, and nothing else of it can be changed."""
    meta = tree["metadata"]
    left: int = meta.get("deletionGracePeriodSeconds", 0)
    if asked is None or asked >= left:
        return None
    end = parse_time(meta["deletionTimestamp"]) - timedelta(seconds=left - asked)
    meta |= {"deletionTimestamp": format_time(end), "deletionGracePeriodSeconds": asked}
    return tree


def _default_policy(strategy: Strategy, meta: Tree) -> str:
    """What becomes of dependents if the client does not say: as a finalizer says that is there, or as is usual."""
    decided = strategy.dependents == UNSUPPORTED or not _POLICY_FINALIZERS.isdisjoint(
        meta.get("finalizers", ())
    )
    return "" if decided else strategy.dependents


def _set_policy(meta: Tree, policy: str) -> None:
    """The finalizer that a propagation policy stands for, in place of any other's."""
    if not policy:
        return
    finalizers = [name for name in meta.get("finalizers", []) if name not in _POLICY_FINALIZERS]
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
        claims = await backend.claims(call.resource, None, marked)
        seen, gone = _unchanged(stored.key, revision), Delete(key=stored.key)
        result = await backend.kv.txn(Txn(compare=(seen, *claims.compare), then=(gone, *claims.then)))
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
