"""What a reconciliation did, in words."""

from mockube.client.kinds import DEPLOYMENTS, PODS
from mockube.client.resources import Key
from mockube.controller_manager.control.action_summary import summarize
from mockube.controller_manager.control.actions import (
    Adopt,
    CompletedWrite,
    Create,
    ObjectRef,
    Plan,
    PlanResult,
    RecordEvent,
    Update,
)


def test_writes_are_counted_by_resource():
    create, update = (
        Create(resource=PODS, bodies=({}, {}, {})),
        Update(resource=DEPLOYMENTS, body={}, subresource="status"),
    )
    writes = (*[CompletedWrite(create, Key("a", "b"), {})] * 2, CompletedWrite(update, Key("a", "b"), {}))
    plan = Plan(actions=(create,), last=lambda _: (update,))
    assert summarize(plan, PlanResult(error=None, writes=writes)) == (
        "create pods: 2",
        "update deployments.apps/status",
    )


def test_adoptions_and_events_are_those_of_the_plan():
    orphans = (ObjectRef(Key("a", "b"), "1"), ObjectRef(Key("a", "c"), "2"))
    plan = Plan(
        actions=(
            Adopt(resource=PODS, orphans=orphans, owner_resource=DEPLOYMENTS, owner={}),
            RecordEvent(about={}, type="Normal", reason="Scaled", message=""),
        )
    )
    assert summarize(plan, PlanResult(error=None, writes=())) == ("adopt pods: 2", "Event Scaled")


def test_plan_without_actions_has_no_summary():
    assert summarize(Plan(), PlanResult(error=None, writes=())) == ()
