"""The events about custom objects whose operator is simulated."""

from datetime import timedelta

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.background_tasks import TASKS
from mockube.apiserver.customresources.unreconciled import GRACE, MAX_OBJECTS, SECONDS, UnreconciledObjects
from mockube.apiserver.registry.simulated_operators import SimulatedOperators
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.task_supervisor import TaskSupervisor
from tests.support.event_loop import yield_to_loop
from tests.support.server.custom_kinds import HOOKS_V1, hook, hooks_definition
from tests.support.server.definitions import ANY_VALUE, DEFINITIONS
from tests.support.server.memory_api import CORE
from tests.support.server.simulated_operator import OPERATOR, run_operator

WHY = (
    f"its operator, {OPERATOR}, is simulated and does nothing, and no other program watches hooks.versions.test; "
    "run the operator as a process, see docs/guides/operators.md"
)


@pytest.fixture
async def objects(api):
    definition = hooks_definition(by_webhook=False)
    for version in definition["spec"]["versions"]:
        version["subresources"] = {"status": {}}
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = ANY_VALUE
    await api.create_all((DEFINITIONS, definition))
    await run_operator(api)
    return UnreconciledObjects(api.registry, SimulatedOperators(api.rights.rbac.policy))


async def events(api, objects, seconds=GRACE):
    """Return the events after some time has passed."""
    await api.settle()
    api.registry.clock.advance(seconds.total_seconds())
    await objects.report_all()
    await api.settle()
    items = (await api.get(f"{CORE}/events")).body["items"]
    return [
        (event["involvedObject"]["name"], event["type"], event["reason"], event["message"]) for event in items
    ]


NOT_RECONCILED = ("a", "Warning", "NotReconciled", f"Nothing reconciles this Hook: {WHY}")


async def test_object_has_one_event_after_the_grace_period(api, objects):
    await api.create(HOOKS_V1, hook())
    assert await events(api, objects, GRACE - timedelta(seconds=1)) == []
    assert await events(api, objects) == [NOT_RECONCILED]
    assert await events(api, objects) == [NOT_RECONCILED]


async def test_event_refers_to_the_object(api, objects):
    created = (await api.create(HOOKS_V1, hook())).body
    await events(api, objects)
    (event,) = (await api.get(f"{CORE}/events")).body["items"]
    assert event["involvedObject"] == {
        "apiVersion": "versions.test/v2",
        "kind": "Hook",
        "name": "a",
        "namespace": "default",
        "resourceVersion": created["metadata"]["resourceVersion"],
        "uid": created["metadata"]["uid"],
    }
    assert event["source"] == {"component": "mockube"}


async def test_object_that_waits_for_its_finalizer_has_another_event(api, objects):
    await api.create(
        HOOKS_V1, hook() | {"metadata": {"name": "a", "finalizers": ["versions.test/cleanup", "orphan"]}}
    )
    assert await events(api, objects) == [NOT_RECONCILED]
    await api.delete(f"{HOOKS_V1}/a")
    text = "The object is being deleted and waits until its finalizers are removed: versions.test/cleanup"
    not_finalized = ("a", "Warning", "NotFinalized", f"{text}. Nothing removes them: {WHY}")
    assert sorted(await events(api, objects)) == [not_finalized, NOT_RECONCILED]


async def test_object_that_waits_for_the_garbage_collector_has_no_event(api, objects):
    await api.create(HOOKS_V1, hook() | {"metadata": {"name": "a", "finalizers": ["foregroundDeletion"]}})
    await api.delete(f"{HOOKS_V1}/a")
    assert await events(api, objects) == []


async def test_object_whose_status_was_written_has_no_event(api, objects):
    await api.create(HOOKS_V1, hook())
    answer = await api.patch(f"{HOOKS_V1}/a/status", {"status": {"ready": True}})
    assert answer.code == 200, answer.message
    assert await events(api, objects) == []


async def test_object_that_a_pack_reconciles_has_no_event(api, objects):
    reconciled = {GroupResource("versions.test", "hooks")}
    packed = UnreconciledObjects(api.registry, SimulatedOperators(api.rights.rbac.policy, reconciled))
    await api.create(HOOKS_V1, hook())
    assert await events(api, packed) == []


async def test_number_of_events_is_limited(api, objects):
    for number in range(MAX_OBJECTS + 1):
        await api.create(HOOKS_V1, hook(name=f"h{number}"))
    assert len(await events(api, objects)) == MAX_OBJECTS


async def test_task_writes_events_while_there_are_definitions(api, objects):
    await api.create(HOOKS_V1, hook())
    await api.settle()
    supervisor = TaskSupervisor(api.registry.clock, TASKS, MetricsRegistry())
    cache = api.registry.resource_cache(GroupResource("", "events"))
    async with supervisor.running():
        supervisor.start("unreconciled-objects", objects.run)
        while not cache.objects:
            api.registry.clock.advance(SECONDS)
            await yield_to_loop()
