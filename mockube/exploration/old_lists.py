"""Lists and watches of the past, as an API server that lags behind gives them to an operator that lists with resourceVersion=0."""

from collections.abc import Iterable, Sequence

from mockube.apimachinery import meta
from mockube.control_objects import list_changes
from mockube.operators.end_state import NOISE, Identity, kind_of
from mockube.operators.writes import LEASES

from . import plans
from .change import Change
from .operator_run import ObjectMissing, OperatorRun
from .plans import Disturbance
from .trace import OperatorRequest, Trace


async def start_with_old_lists(run: OperatorRun, disturbance: Disturbance) -> None:
    """Let the operator crash, and start with lists and watches of the past, which show everything again when all is quiet."""
    async with run.replacing:
        await run.replace_operator(grace=0, text="the operator is killed")
        try:
            await _make_old(run, disturbance)
        finally:
            await run.restart_now()


async def _make_old(run: OperatorRun, disturbance: Disturbance) -> None:
    revision = await _past_revision(run, disturbance)
    is_of_all = disturbance.resource == plans.ALL
    resources = cached_resources(run.trace.requests) if is_of_all else [disturbance.resource]
    faults = [
        await run.add_fault(
            {"match": run.match(verbs=["list", "watch"], resource=each), "stale": {"revision": revision}}
        )
        for each in resources
    ]
    if not faults:
        raise ObjectMissing("it has no lists that may be old")
    run.trace.hide(faults[0], disturbance.resource, revision)
    run.trace.note(f"its lists and watches show revision {revision}")

    async def release() -> None:
        run.trace.note("its watches show everything again")
        for fault in faults:
            await run.delete_fault(fault)

    run.hold_back(release)


async def _past_revision(run: OperatorRun, disturbance: Disturbance) -> int:
    """Return the revision of the past state that a disturbance is about."""
    if disturbance.is_deleting:
        return _revision_of_deletion(run)
    if disturbance.steps:
        if len(run.trace.step_revisions) < disturbance.steps:
            raise ObjectMissing("there were not as many steps")
        return run.trace.step_revisions[-disturbance.steps]
    revisions = await _own_revisions(run)
    if len(revisions) < disturbance.revisions:
        raise ObjectMissing("it has not written as much that its lists and watches could miss")
    return revisions[-disturbance.revisions] - 1


async def _own_revisions(run: OperatorRun) -> Sequence[int]:
    """Return the revisions of the operator's writes. The trace may not have the last ones yet."""
    changes = await list_changes(run.client, {"user": run.setting.identity.user})
    specs = [each["spec"] for each in changes]
    return sorted({spec["revision"] for spec in specs if kind_of(spec["object"]) not in NOISE})


def _revision_of_deletion(run: OperatorRun) -> int:
    subject = run.setting.scenario.subject
    identity = None if subject is None else subject.find(run.trace.touched)
    found = [] if identity is None else [*deletions(run.trace, identity)]
    if not found:
        raise ObjectMissing("its resource was not deleted")
    return found[-1].revision


def deletions(trace: Trace, identity: Identity) -> Iterable[Change]:
    """Return the changes that begin a deletion of an object."""
    return (each for each in trace.changes if each.identity == identity and each.begins_deletion)


def recreated_steps(trace: Trace, identity: Identity | None) -> Sequence[int]:
    """Return the steps at whose end an object exists again after a deletion."""
    ends = [*trace.step_revisions[1:], None]  # the last step ends with the run
    return [step for step, end in enumerate(ends) if identity and _is_recreated(trace, identity, end)]


def _is_recreated(trace: Trace, identity: Identity, end: int | None) -> bool:
    changes = [each for each in trace.changes if end is None or each.revision <= end]
    own = [each for each in changes if each.identity == identity]
    was_deleted = any(each.type == "DELETED" for each in own)
    return was_deleted and own[-1].after is not None and not meta.is_deleting(own[-1].after)


def cached_resources(requests: Sequence[OperatorRequest]) -> Sequence[str]:
    """Return the resources that an operator lists from the cache of a server, which may be old."""
    lists = (each for each in requests if each.verb == "list" and "resourceVersion=0" in each.uri)
    return sorted({each.resource for each in lists} - {LEASES})
