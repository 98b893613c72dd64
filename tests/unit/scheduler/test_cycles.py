"""One pod from the queue to its node: the decision, the binding, and what follows when one of them fails."""

import asyncio

import pytest
from msgspec.structs import replace

from mockube.apimachinery.status import Conflict, ServiceUnavailable
from mockube.client import kinds
from mockube.client.resources import Key
from mockube.scheduler import preemption_executor
from mockube.scheduler.algorithm import SchedulingAlgorithm
from mockube.scheduler.binder import Binder, BindingFailure, BindingSlots
from mockube.scheduler.binding_cycle import BindingCycle
from mockube.scheduler.choice import FeasibleNodes, find_feasible
from mockube.scheduler.failure import SchedulingFailure
from mockube.scheduler.failure_handler import FailureHandler
from mockube.scheduler.monitor import SchedulerMonitor
from mockube.scheduler.preemption import Candidate, Preemption
from mockube.scheduler.preemption_executor import PreemptionExecutor, PreemptionsInProgress
from mockube.scheduler.profiles import DEFAULT_PROFILE, DEFAULT_SETTINGS
from mockube.scheduler.reporting import PodReporter
from mockube.scheduler.scheduling_cycle import SchedulingCycle
from mockube.scheduler.volumes import ClaimBinding
from tests.support.controllers.scheduler_objects import node, pod
from tests.support.controllers.scheduler_parts import RecordingClient, SchedulerParts
from tests.support.event_loop import yield_to_loop
from tests.support.metric_samples import sample_value
from tests.unit.scheduler import test_extended_resources as extended

WEB = Key("default", "web")


class Cycles(SchedulerParts):
    def __init__(self):
        super().__init__()
        context, monitor = self.context, SchedulerMonitor(self.clock.monotonic, self.context.metrics.registry)
        reporter = PodReporter(context, DEFAULT_SETTINGS.profiles)
        in_progress = PreemptionsInProgress(self.informers.of(kinds.PODS).lister)
        preemptions = PreemptionExecutor(context, in_progress, reporter.recorder_of, self.queue.resume)
        self.preemptions, self.monitor, self.reporter = preemptions, monitor, reporter
        self.scheduling = self.scheduling_by(SchedulingAlgorithm(self.state.cache, monitor, None))
        self.binding = self.binding_by(Binder(context, BindingSlots(1), None))

    def scheduling_by(self, algorithm, extenders=None):
        failures = FailureHandler(
            self.context, self.state, self.preemptions, extenders, self.reporter, self.monitor
        )
        return SchedulingCycle(self.context, self.state, self.queue, algorithm, failures, self.monitor)

    def binding_by(self, binder):
        return BindingCycle(self.context, self.state, self.handlers, binder, self.reporter, self.monitor)

    async def schedule(self):
        """Take the next pod from the queue, and decide on it."""
        key = await self.queue.pop()
        assumed = await self.scheduling.schedule(key)
        self.queue.done()
        return assumed

    async def bind(self, tree):
        """Schedule a pod on the node a, and bind it."""
        self.put_nodes(node("a"))
        self.put(tree)
        await self.binding.start(await self.schedule())

    @property
    def writes(self):
        return [(verb, what) for verb, what, *_ in self.client.requests]


@pytest.fixture
def cycles():
    return Cycles()


async def test_decision_counts_from_then_on_so_that_room_is_given_once(cycles):
    cycles.put_nodes(node("a", cpu="1"))
    cycles.put(pod("web", requests={"cpu": "1"}), pod("other", requests={"cpu": "1"}))
    assumed = await cycles.schedule()
    assert (assumed.pod.view.key, assumed.node, assumed.attempts) == (WEB, "a", 1)
    assert cycles.state.cache.is_assumed("web")
    assert await cycles.schedule() is None
    assert cycles.recorded.reasons == [("other", "FailedScheduling")]
    assert cycles.pending["unschedulable"] == 1


async def test_pod_that_was_bound_by_another_needs_no_decision(cycles):
    cycles.put(pod("web"))
    key = await cycles.queue.pop()
    cycles.put(pod("web", nodeName="a"))
    assert await cycles.scheduling.schedule(key) is None
    assert cycles.client.requests == []


async def test_pod_that_is_not_known_leaves_the_queue(cycles):
    cycles.queue.add(WEB, 0)
    assert await cycles.schedule() is None
    assert cycles.pending == {}


async def test_pod_that_is_deleted_during_its_decision_gets_no_node(cycles):
    class SlowAlgorithm:
        async def decide(self, *_, **__):
            cycles.remove(pod("web"))
            return cycles.state.cache.nodes(), FeasibleNodes(cycles.state.cache.nodes())

    cycles.put_nodes(node("a"))
    cycles.put(pod("web"))
    cycles.scheduling = cycles.scheduling_by(SlowAlgorithm())
    assert await cycles.schedule() is None
    assert not cycles.state.cache.has_pod("web")


async def test_error_of_a_plugin_is_tried_again_without_a_change(cycles):
    expression = {"key": "a", "operator": "In", "values": []}
    terms = [{"weight": 1, "preference": {"matchExpressions": [expression]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    cycles.put_nodes(node("a"), node("b"))
    cycles.put(pod("web", affinity=affinity))
    assert await cycles.schedule() is None
    ((*_, patch),) = cycles.client.requests
    assert patch["status"]["conditions"][0]["reason"] == "SchedulerError"
    cycles.clock.advance(1)
    assert cycles.pending == {"active": 1}


async def test_nomination_ends_when_it_no_longer_helps(cycles):
    cycles.put(pod("web", status={"nominatedNodeName": "a"}))
    await cycles.schedule()
    assert cycles.state.nominator.pods_on("a") == []
    ((*_, patch),) = cycles.client.requests
    assert patch["status"]["nominatedNodeName"] is None


async def test_nomination_ends_when_the_pod_has_its_room(cycles):
    cycles.put_nodes(node("a"))
    cycles.put(pod("web", status={"nominatedNodeName": "a"}))
    assert (await cycles.schedule()).node == "a"
    assert cycles.state.nominator.pods_on("a") == []


async def test_reason_of_a_failure_is_in_the_event_and_in_the_status(cycles):
    cycles.put(pod("web"))
    assert await cycles.schedule() is None
    message = "no nodes available to schedule pods"
    assert cycles.recorded.events == [("web", "Warning", "FailedScheduling", message)]
    ((verb, what, key, patch),) = cycles.client.requests
    assert (verb, what, key) == ("patch", "pods/status", WEB)
    (condition,) = patch["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("Unschedulable", message)


async def test_pod_of_higher_priority_is_nominated_and_evicts(cycles):
    cycles.put_nodes(node("a", cpu="1"))
    cycles.put(pod("low", requests={"cpu": "1"}, nodeName="a", priority=1))
    cycles.put(pod("web", requests={"cpu": "1"}, priority=5, schedulerName="default-scheduler"))
    assert await cycles.schedule() is None
    assert [one.view.key for one in cycles.state.nominator.pods_on("a")] == [WEB]
    await cycles.preemptions.finish()
    assert ("delete", "pods") in cycles.writes
    assert ("low", "Preempted") in cycles.recorded.reasons


class PreemptingExtenders:
    """Extenders that accept no candidate of a preemption."""

    def __init__(self):
        self.asked = []

    async def process_preemption(self, _, preemption, __):
        self.asked += [one.node for one in preemption.candidates]
        return Preemption(problem="the extender does not want it", keeps_nomination=True)


@pytest.mark.parametrize(
    ("priority", "asked", "problem"),
    [
        (1, ["a"], "the extender does not want it"),
        (9, [], "0/1 nodes are available: 1 No preemption victims found for incoming pod."),
    ],
)
async def test_extenders_are_asked_about_the_candidates_of_a_preemption(cycles, priority, asked, problem):
    extenders = PreemptingExtenders()
    cycles.scheduling = cycles.scheduling_by(cycles.scheduling._algorithm, extenders)
    cycles.put_nodes(node("a", cpu="1"))
    cycles.put(pod("low", requests={"cpu": "1"}, nodeName="a", priority=priority))
    cycles.put(pod("web", requests={"cpu": "1"}, priority=5))
    assert await cycles.schedule() is None
    assert extenders.asked == asked
    ((*_, text),) = cycles.recorded.events
    assert text.endswith(f"preemption: {problem}")


@pytest.mark.parametrize("error", [False, True])
async def test_attempts_to_preempt_are_counted_unless_the_decision_failed(cycles, error):
    expression = {"key": "a", "operator": "Lt", "values": ["x" if error else "1"]}
    terms = [{"weight": 1, "preference": {"matchExpressions": [expression]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    cycles.put_nodes(node("a"), node("b"))
    cycles.put(pod("web", affinity=affinity, requests={} if error else {"cpu": "9"}))
    await cycles.schedule()
    registry = cycles.context.metrics.registry
    assert (sample_value(registry, "scheduler_preemption_attempts_total") or 0) == (not error)
    labels = {"profile": "default-scheduler", "result": "error" if error else "unschedulable"}
    assert sample_value(registry, "scheduler_schedule_attempts_total", labels) == 1


async def test_nomination_stays_while_the_pod_may_not_preempt(cycles):
    cycles.put_nodes(node("a", cpu="1"))
    nominated = {"nominatedNodeName": "a"}
    cycles.put(pod("web", requests={"cpu": "9"}, priority=5, preemptionPolicy="Never", status=nominated))
    await cycles.schedule()
    assert [one.view.key for one in cycles.state.nominator.pods_on("a")] == [WEB]
    ((*_, patch),) = cycles.client.requests
    assert "nominatedNodeName" not in patch["status"]


async def test_finished_bindings_are_forgotten(cycles):
    await cycles.bind(pod("web"))
    await yield_to_loop()
    assert cycles.binding._tasks == set()


async def test_binding_is_counted_and_measured(cycles):
    await cycles.bind(pod("web"))
    registry = cycles.context.metrics.registry
    labels = {"profile": "default-scheduler", "result": "scheduled"}
    assert sample_value(registry, "scheduler_schedule_attempts_total", labels) == 1
    assert sample_value(registry, "scheduler_pod_scheduling_attempts_sum") == 1
    labels = {"extension_point": "Bind", "status": "Success", "profile": "default-scheduler"}
    name = "scheduler_framework_extension_point_duration_seconds_count"
    assert sample_value(registry, name, labels) == 1
    cycles.client.error = Conflict("taken")
    await cycles.bind(pod("other"))
    labels = {"profile": "default-scheduler", "result": "error"}
    assert sample_value(registry, "scheduler_schedule_attempts_total", labels) == 1


async def test_bound_pod_is_reported_and_stays_assumed_until_the_server_confirms(cycles):
    await cycles.bind(pod("web"))
    assert cycles.writes == [("create", "pods/binding")]
    assert cycles.recorded.events == [
        ("web", "Normal", "Scheduled", "Successfully assigned default/web to a")
    ]
    assert cycles.state.cache.is_assumed("web")


async def test_refused_binding_is_reported_and_tried_again(cycles):
    cycles.client.error = Conflict("taken")
    await cycles.bind(pod("web"))
    assert cycles.writes == [("create", "pods/binding"), ("patch", "pods/status")]
    ((name, _, reason, text),) = cycles.recorded.events
    assert (name, reason) == ("web", "FailedScheduling")
    assert text == 'running Bind plugin "DefaultBinder": taken'
    assert not cycles.state.cache.has_pod("web")
    cycles.clock.advance(1)
    assert cycles.pending == {"active": 1}


async def test_unexpected_error_of_a_binding_is_counted_and_tried_again(cycles, caplog):
    cycles.client.error = ValueError("a defect")
    cycles.put_nodes(node("a"))
    cycles.put(pod("web"))
    assumed = await cycles.schedule()
    with pytest.raises(ValueError, match="a defect"):  # of the report's patch
        await cycles.binding.start(assumed)
    assert cycles.context.metrics.task_restarts.of("scheduler/bind").value == 1
    assert "binding failed and is retried" in caplog.text
    assert cycles.pending == {"backoff": 1}


class FakeBinder:
    """A binder that calls a function of the test."""

    def __init__(self, bind):
        self._bind = bind

    async def bind(self, *_):
        await self._bind()


async def test_pod_that_has_gone_during_a_failed_binding_is_not_reported(cycles):
    async def fail():
        cycles.remove(pod("web"))
        raise BindingFailure("gone")

    cycles.binding = cycles.binding_by(FakeBinder(fail))
    await cycles.bind(pod("web"))
    assert (cycles.recorded.events, cycles.pending) == ([], {})


async def test_pod_that_is_bound_although_the_response_was_lost_stays_on_its_node(cycles):
    async def lose_response():
        cycles.put(pod("web", metadata={"resourceVersion": "2"}, nodeName="a"))
        raise BindingFailure("lost")

    cycles.binding = cycles.binding_by(FakeBinder(lose_response))
    await cycles.bind(pod("web"))
    assert (cycles.recorded.events, cycles.pending) == ([], {})
    assert cycles.state.cache.has_pod("web")


async def test_volumes_are_assumed_until_the_binding_ends(cycles):
    claim = {"metadata": {"name": "data", "namespace": "default", "uid": "data"}, "spec": {}}
    cycles.put_nodes(node("a"))
    cycles.put(pod("web"))
    assumed = await cycles.schedule()
    cycles.state.assume(assumed.pod, cycles.state.cache.node("a"), [ClaimBinding(claim, None)])
    assert cycles.state.storage.assumed.binding_of(claim) is not None
    await cycles.binding.start(assumed)
    assert cycles.state.storage.assumed.binding_of(claim) is None


class FakeDevices:
    """The devices of a pod, which record what becomes of them."""

    def __init__(self, problem=None):
        self._problem = problem
        self.calls = []

    async def bind(self):
        self.calls.append("bind")
        if self._problem is not None:
            raise self._problem

    async def withdraw(self):
        self.calls.append("withdraw")

    def finish(self):
        self.calls.append("finish")


@pytest.mark.parametrize(
    ("of_devices", "of_pod", "calls"),
    [
        (None, None, ["bind", "finish"]),
        (BindingFailure("taken"), None, ["bind", "withdraw", "finish"]),
        (None, Conflict("taken"), ["bind", "withdraw", "finish"]),
        (None, ValueError("a defect"), ["bind", "withdraw", "finish"]),
    ],
)
async def test_devices_of_a_pod_that_is_not_bound_are_withdrawn(cycles, of_devices, of_pod, calls):
    async def bind():
        if of_pod is not None:
            raise of_pod

    cycles.binding = cycles.binding_by(FakeBinder(bind))
    cycles.put_nodes(node("a"))
    cycles.put(pod("web"))
    devices = FakeDevices(of_devices)
    await cycles.binding.start((await cycles.schedule())._replace(devices=devices))
    assert devices.calls == calls


async def test_end_waits_for_the_bindings_in_progress(cycles):
    response = asyncio.Event()
    cycles.binding = cycles.binding_by(FakeBinder(response.wait))
    cycles.put_nodes(node("a"))
    cycles.put(pod("web"))
    binding = cycles.binding.start(await cycles.schedule())
    end = asyncio.create_task(cycles.binding.finish())
    await yield_to_loop()
    assert not end.done()
    response.set()
    await end
    assert binding.done()


class SlowDeletions(RecordingClient):
    """A client whose deletions are not answered before the test says so."""

    def __init__(self):
        super().__init__()
        self.deleted, self.go = [], asyncio.Event()

    async def delete(self, _, key, **__):
        self.deleted.append(key.name)
        await self.go.wait()


async def test_pod_may_be_scheduled_again_once_its_last_victim_terminates(cycles):
    client = SlowDeletions()
    in_progress, resumed = cycles.preemptions._in_progress, []
    executor = PreemptionExecutor(
        replace(cycles.context, client=client), in_progress, cycles.reporter.recorder_of, resumed.append
    )
    cycles.put(pod("first", nodeName="a"), pod("last", nodeName="a"))
    victims = [cycles.info(pod(name, nodeName="a")) for name in ("first", "last")]
    preemptor = cycles.info(pod("web", schedulerName="default-scheduler"))
    executor.preempt(preemptor, Candidate(node="a", victims=victims, pdb_violations=0), [])
    await yield_to_loop(10)
    assert (client.deleted, in_progress.is_blocked(WEB)) == (["first"], True)
    client.go.set()
    await yield_to_loop(1)
    client.go.clear()
    await yield_to_loop(10)
    assert (client.deleted, in_progress.is_blocked(WEB)) == (["first", "last"], True)
    cycles.put(
        pod(
            "last",
            nodeName="a",
            metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "2"},
        )
    )
    assert not in_progress.is_blocked(WEB)
    client.go.set()
    await executor.finish()
    assert resumed == [], "an event will come"


async def test_pod_is_resumed_if_its_last_victim_has_gone_meanwhile(cycles):
    resumed = []
    cycles.preemptions._resume = resumed.append
    victim = cycles.info(pod("last", nodeName="a"))
    preemptor = cycles.info(pod("web", schedulerName="default-scheduler"))
    for known, expected in ((True, []), (False, [WEB])):
        cycles.put(pod("last", nodeName="a")) if known else cycles.remove(pod("last", nodeName="a"))
        cycles.preemptions.preempt(preemptor, Candidate(node="a", victims=[victim], pdb_violations=0), [])
        await cycles.preemptions.finish()
        assert resumed == expected


async def test_victims_that_terminate_are_not_evicted_again(cycles):
    going = cycles.info(pod("going", nodeName="a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    preemptor = cycles.info(pod("web", schedulerName="default-scheduler"))
    cycles.preemptions.preempt(preemptor, Candidate(node="a", victims=[going], pdb_violations=0), [])
    await cycles.preemptions.finish()
    assert (cycles.writes, cycles.preemptions._in_progress.is_blocked(WEB)) == ([], False)


async def test_nominations_of_lower_pods_are_cleared_before_an_eviction(cycles, caplog):
    nominee = cycles.info(pod("nominee"))
    victim = cycles.info(pod("victim", nodeName="a"))
    preemptor = cycles.info(pod("web", schedulerName="default-scheduler"))
    candidate = Candidate(node="a", victims=[victim], pdb_violations=0)
    cycles.preemptions.preempt(preemptor, candidate, [nominee])
    await cycles.preemptions.finish()
    (_, _, key, patch), *_ = cycles.client.requests
    assert (key.name, patch["status"]) == ("nominee", {"nominatedNodeName": None})
    cycles.client.error = ServiceUnavailable("no")
    cycles.preemptions.preempt(preemptor, candidate, [nominee])
    await cycles.preemptions.finish()
    assert "clearing the nomination failed: no" in caplog.text


async def test_unexpected_error_of_a_preemption_is_counted(cycles, caplog):
    cycles.client.error = ValueError("a defect")
    victim = cycles.info(pod("victim", nodeName="a"))
    preemptor = cycles.info(pod("web", schedulerName="default-scheduler"))
    cycles.preemptions.preempt(preemptor, Candidate(node="a", victims=[victim], pdb_violations=0), [])
    await cycles.preemptions.finish()
    assert cycles.context.metrics.task_restarts.of("scheduler/preempt").value == 1
    assert not cycles.preemptions._in_progress.is_blocked(WEB)
    await yield_to_loop()
    assert cycles.preemptions._tasks == set()


class Refusing(RecordingClient):
    """A client whose deletions of some pods fail."""

    def __init__(self, refused):
        super().__init__()
        self.deleted = []
        self._refused = refused

    async def delete(self, _, key, **__):
        if key.name in self._refused:
            raise ServiceUnavailable("no")
        self.deleted.append(key.name)


async def test_later_victims_stay_if_one_cannot_be_evicted(cycles, caplog, monkeypatch):
    monkeypatch.setattr(preemption_executor, "PARALLELISM", 1)
    client = Refusing({"first"})
    context = replace(cycles.context, client=client)
    victims = [cycles.info(pod(name, nodeName="a")) for name in ("first", "second", "last")]
    resumed = []
    executor = PreemptionExecutor(
        context, cycles.preemptions._in_progress, cycles.reporter.recorder_of, resumed.append
    )
    preemptor = cycles.info(pod("web", schedulerName="default-scheduler"))
    executor.preempt(preemptor, Candidate(node="a", victims=victims, pdb_violations=0), [])
    await executor.finish()
    assert (client.deleted, resumed) == ([], [WEB])
    assert "preemption on node a failed: no" in caplog.text


async def test_victim_with_the_condition_is_deleted_without_a_patch(cycles):
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    marked = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": message,
        "observedGeneration": 0,
    }
    preemptor = cycles.info(pod("web", schedulerName="default-scheduler"))
    for name, conditions in (("new", []), ("marked", [marked])):
        victim = cycles.info(pod(name, nodeName="a", status={"conditions": conditions}))
        cycles.preemptions.preempt(preemptor, Candidate(node="a", victims=[victim], pdb_violations=0), [])
        await cycles.preemptions.finish()
    assert [(verb, key.name) for verb, _, key, *_ in cycles.client.requests] == [
        ("patch", "new"),
        ("delete", "new"),
        ("delete", "marked"),
    ]


@pytest.mark.parametrize(
    ("field", "verbs"), [("unused_claim", ["update"]), ("stale_claim", ["update", "delete"])]
)
async def test_claim_that_keeps_a_pod_from_running_is_released(cycles, field, verbs):
    claim = {
        "metadata": {"name": "gpu", "namespace": "default", "uid": "gpu"},
        "status": {"allocation": {}, "reservedFor": []},
    }
    handler = cycles.scheduling._failures
    await handler._release_claims(SchedulingFailure(message="no room", **{field: claim}))
    assert {what.partition("/")[0] for _, what in cycles.writes} == {"resourceclaims"}
    assert [verb for verb, _ in cycles.writes] == verbs


async def test_stale_claim_for_extended_resources_is_deleted_after_a_failure(cycles):
    tree = {**extended.pod(extended.container(gpu=1)).object}
    claim = {**extended.CLAIM_OF_POD, "status": {}}
    cycles.put(tree)
    pod_info, seen = cycles.info(tree), extended.snapshot(claim)
    found = find_feasible(pod_info, seen)
    await cycles.scheduling._failures.handle(pod_info, seen, found, DEFAULT_PROFILE)
    assert cycles.writes[:2] == [("update", "resourceclaims"), ("delete", "resourceclaims")]


async def test_pod_without_claims_has_no_devices_in_a_cluster_with_some(cycles):
    cycles.put_nodes(node("a"))
    cycles.state.track_devices(lambda *_: None)
    cycles.state.devices._is_known = True
    cycles.put(pod("web"))
    assert (await cycles.schedule()).devices is None
