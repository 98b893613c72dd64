"""Action executor: the result of each action, its errors, Events and expected own writes."""

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.status import (
    AlreadyExists,
    Cause,
    Conflict,
    Details,
    Forbidden,
    Invalid,
    NotFound,
)
from mockube.client.kinds import PODS, REPLICA_SETS
from mockube.client.resources import Key
from mockube.client.wire import OutcomeUnknown
from mockube.controller_manager.control.actions import (
    Adopt,
    Confirm,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Patch,
    Plan,
    RecordEvent,
    Release,
    SlowStart,
    Update,
)
from mockube.controller_manager.control.executor import Executor
from mockube.controller_manager.control.own_writes import KeyWrites
from tests.support.recorded.recorded_client import FakeEventRecorder, RecordedClient, key

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"namespace": "default", "name": "web", "uid": "u-web"},
}
EVENT = EventTemplate(
    about=OWNER,
    on_success=("SuccessfulThing", "did {name}"),
    on_failure=("FailedThing", "did not: {error}"),
)
POD = {"metadata": {"namespace": "default", "generateName": "web-"}}
NAMED = {"metadata": {"namespace": "default", "name": "web-0"}}
TERMINATING = Forbidden("no", Details(causes=(Cause(reason="NamespaceTerminating"),)))


class Runtime:
    def __init__(self):
        self.client = RecordedClient(objects={key("web"): OWNER})
        self.sayer = FakeEventRecorder()
        self.writes = KeyWrites(reconciled_at=0.0)

    async def do(self, *actions, last=None):
        plan = Plan(actions=actions) if last is None else Plan(actions=actions, last=last)
        await Executor(self.client, self.sayer).execute(plan, self.writes)


@pytest.fixture
def runtime():
    return Runtime()


def refs(*names):
    return tuple(ObjectRef(key(name), f"u-{name}") for name in names)


async def test_creations_record_events_and_own_writes(runtime):
    await runtime.do(Create(resource=PODS, bodies=(POD, POD), event=EVENT))
    assert runtime.client.summary() == ["create pods web-0", "create pods web-1"]
    assert runtime.sayer.events == [
        ("web", "Normal", "SuccessfulThing", "did web-0"),
        ("web", "Normal", "SuccessfulThing", "did web-1"),
    ]
    assert runtime.writes.revisions == {PODS: 102}


@pytest.mark.parametrize(
    ("body", "error", "error_message"),
    [
        pytest.param(POD, Forbidden("quota"), ["did not: quota"], id="refused"),
        pytest.param(POD, AlreadyExists("again"), ["did not: again"], id="generated name exists"),
        pytest.param(NAMED, AlreadyExists("again"), [], id="requested name exists"),
    ],
)
async def test_failed_creation_ends_plan(runtime, body, error, error_message):
    runtime.client.refusals["create", "*"] = error
    with pytest.raises(type(error)):
        await runtime.do(
            Create(resource=PODS, bodies=(body,) * 5, event=EVENT),
            RecordEvent(about=OWNER, type="Normal", reason="Never", message=""),
        )
    assert len(runtime.client.calls) == 1
    assert [message for *_, message in runtime.sayer.events] == error_message


def patch_of_created(made):
    body = {"metadata": {"uid": meta.uid(made)}}
    return (Patch(resource=PODS, key=Key.of(made), body=body),)


async def test_follow_up_writes_run_as_soon_as_object_is_created(runtime):
    await runtime.do(Create(resource=PODS, bodies=(POD, POD), then=patch_of_created))
    assert runtime.client.summary() == [
        "create pods web-0",
        "patch pods web-0",
        "create pods web-2",
        "patch pods web-2",
    ]
    assert runtime.writes.revisions == {PODS: 104}


async def test_failed_follow_up_write_is_retried_by_next_reconciliation(runtime):
    runtime.client.refusals["patch", "web-0"] = Forbidden("why")
    await runtime.do(Create(resource=PODS, bodies=(POD, POD), event=EVENT, then=patch_of_created))
    assert runtime.client.summary()[-2:] == ["create pods web-2", "patch pods web-2"]
    assert [message for *_, message in runtime.sayer.events] == ["did web-0", "did web-2"]


async def test_creation_in_terminating_namespace_is_no_failure(runtime):
    runtime.client.refusals["create", "*"] = TERMINATING
    await runtime.do(Create(resource=PODS, bodies=(POD,) * 3, event=EVENT))
    assert runtime.sayer.events == []


async def test_deletions_have_uid_precondition_and_event(runtime):
    await runtime.do(Delete(resource=PODS, objects=refs("a", "b"), propagation="Background", event=EVENT))
    assert [sent for *_, sent in runtime.client.calls] == [("u-a", "Background"), ("u-b", "Background")]
    assert [message for *_, message in runtime.sayer.events] == ["did a", "did b"]
    assert runtime.writes.revisions == {PODS: 102}


async def test_deletion_of_missing_object_is_awaited_in_cache(runtime):
    runtime.client.refusals["delete", "a"] = NotFound("gone")
    await runtime.do(Delete(resource=PODS, objects=refs("a"), event=EVENT))
    assert runtime.sayer.events == []
    assert runtime.writes.deletions == {(PODS, key("a")): "u-a"}


async def test_conflicting_deletion_is_retried_without_event(runtime):
    runtime.client.refusals["delete", "a"] = Conflict("another uid, or a concurrent write")
    with pytest.raises(Conflict):
        await runtime.do(Delete(resource=PODS, objects=refs("a"), event=EVENT))
    assert runtime.sayer.events == []
    assert not runtime.writes.deletions


async def test_failed_deletion_does_not_stop_others(runtime):
    runtime.client.refusals["delete", "b"] = Forbidden("no")
    with pytest.raises(Forbidden):
        await runtime.do(Delete(resource=PODS, objects=refs("a", "b", "c"), event=EVENT))
    assert [message for *_, message in runtime.sayer.events] == ["did a", "did not: no", "did c"]


async def test_updates_and_patches_are_sent(runtime):
    await runtime.do(
        Update(resource=REPLICA_SETS, body=OWNER, subresource="status"),
        Patch(resource=PODS, key=key("a"), body={"x": 1}, kind="strategic", event=EVENT),
    )
    assert runtime.client.calls == [
        ("update", "replicasets", "web", "status"),
        ("patch", "pods", "a", ("strategic", "", {"x": 1})),
    ]
    assert runtime.writes.revisions == {REPLICA_SETS: 101, PODS: 102}
    assert [message for *_, message in runtime.sayer.events] == ["did a"]


async def test_adoption_reads_owner_first(runtime):
    await runtime.do(Adopt(resource=PODS, orphans=refs("a"), owner_resource=REPLICA_SETS, owner=OWNER))
    assert runtime.client.summary() == ["get replicasets web", "patch pods a"]
    kind, _, body = runtime.client.calls[1][-1]
    assert kind == "strategic"
    assert body == {
        "metadata": {
            "uid": "u-a",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "u-web",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        }
    }


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"uid": "u-other"}, NotFound, id="another one has its name"),
        pytest.param({"deletionTimestamp": "2030-01-01T00:00:00Z"}, Conflict, id="it is being deleted"),
    ],
)
async def test_deleting_owner_does_not_adopt(runtime, changes, error):
    runtime.client.objects[key("web")] = {**OWNER, "metadata": {**OWNER["metadata"], **changes}}
    with pytest.raises(error):
        await runtime.do(Adopt(resource=PODS, orphans=refs("a"), owner_resource=REPLICA_SETS, owner=OWNER))
    assert runtime.client.summary() == ["get replicasets web"]


@pytest.mark.parametrize("error", [NotFound("gone"), Invalid("no such owner")], ids=["gone", "not owned"])
async def test_release_of_missing_object_succeeds(runtime, error):
    runtime.client.refusals["patch", "a"] = error
    await runtime.do(Release(resource=PODS, objects=refs("a", "b"), owner=OWNER))
    assert runtime.client.summary() == ["patch pods a", "patch pods b"]
    assert runtime.client.calls[0][-1][-1] == {
        "metadata": {"uid": "u-a", "ownerReferences": [{"$patch": "delete", "uid": "u-web"}]}
    }


async def test_failed_adoption_is_an_error_unless_orphan_is_gone(runtime):
    runtime.client.refusals |= {("patch", "a"): NotFound("gone"), ("patch", "b"): Invalid("two controllers")}
    adopt = Adopt(resource=PODS, orphans=refs("a", "b"), owner_resource=REPLICA_SETS, owner=OWNER)
    with pytest.raises(Invalid):
        await runtime.do(adopt)


@pytest.mark.parametrize(
    ("name", "selector"),
    [pytest.param("a", "metadata.name=a", id="one object"), pytest.param("", "", id="a namespace")],
)
async def test_confirm_reads_from_server(runtime, name, selector):
    runtime.client.objects = {key("a"): NAMED}
    seen = []

    def holds(found):
        seen.extend(found)
        return True

    confirm = Confirm(resource=REPLICA_SETS, namespace="default", name=name, holds=holds)
    await runtime.do(confirm, Create(resource=PODS, bodies=(NAMED,)))
    assert runtime.client.summary() == ["list replicasets default", "create pods web-0"]
    assert runtime.client.calls[0][-1] == selector
    assert seen == [NAMED]


async def test_failed_confirmation_ends_plan(runtime):
    confirm = Confirm(resource=REPLICA_SETS, namespace="default", holds=lambda _: False)
    with pytest.raises(Conflict):
        await runtime.do(confirm, Create(resource=PODS, bodies=(NAMED,)))
    assert runtime.client.summary() == ["list replicasets default"]


async def test_last_actions_receive_error_of_plan(runtime):
    outcomes = []

    def update_status(error):
        outcomes.append(error)
        return (Update(resource=REPLICA_SETS, body=OWNER, subresource="status"),)

    await runtime.do(last=update_status)
    refused = runtime.client.refusals["create", "*"] = Forbidden("quota")
    with pytest.raises(Forbidden):
        await runtime.do(Create(resource=PODS, bodies=(POD,)), last=update_status)
    assert outcomes == [None, refused]
    assert runtime.client.summary() == [
        "update replicasets web",
        "create pods web-1",
        "update replicasets web",
    ]


async def test_first_error_is_raised(runtime):
    runtime.client.refusals |= {("create", "*"): Forbidden("quota"), ("update", "*"): Conflict("old")}
    with pytest.raises(Forbidden):
        await runtime.do(
            Create(resource=PODS, bodies=(POD,)),
            last=lambda _: (Update(resource=REPLICA_SETS, body=OWNER),),
        )


async def test_write_without_response_is_recorded_as_unknown(runtime):
    runtime.client.refusals["create", "*"] = OutcomeUnknown("cut")
    with pytest.raises(OutcomeUnknown):
        await runtime.do(Create(resource=PODS, bodies=(POD,), event=EVENT))
    assert runtime.writes.unknown == {PODS}
    assert runtime.sayer.events == []


async def test_record_event_action_records_event(runtime):
    await runtime.do(RecordEvent(about=OWNER, type="Warning", reason="Why", message="{braces} stay"))
    assert runtime.sayer.events == [("web", "Warning", "Why", "{braces} stay")]


def patch(name):
    return Patch(resource=PODS, key=key(name), body={}, event=EVENT)


async def test_creations_use_slow_start(runtime):
    runtime.client.refusals["patch", "c"] = Forbidden("no")
    with pytest.raises(Forbidden):
        await runtime.do(SlowStart(effects=tuple(map(patch, "abcd"))), Update(resource=PODS, body=NAMED))
    assert runtime.client.summary() == ["patch pods a", "patch pods b", "patch pods c"]
    assert [reason for _, _, reason, _ in runtime.sayer.events] == ["SuccessfulThing"] * 2 + ["FailedThing"]


async def test_update_conflict_records_no_event(runtime):
    runtime.client.refusals["update", "*"] = Conflict("old")
    with pytest.raises(Conflict):
        await runtime.do(Update(resource=PODS, body=NAMED, event=EVENT))
    assert runtime.sayer.events == []
