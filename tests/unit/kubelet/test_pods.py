"""The runner of simulated pods: what each change leads to, without a cluster."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from mockube.client.cache.store import Change
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.records import Records
from mockube.kubelet import pods
from mockube.kubelet.node_objects import SIMULATED_NODE_ANNOTATION
from mockube.kubelet.pod_lifecycle.observations import ProbeResult
from mockube.kubelet.pods import SimulatedPods
from mockube.kubelet.step_effects import EmitEvent, RunHook, StartContainer, Step, StopContainer

KEY = Key("d", "p")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Part:
    """A part of the runner: it notes each call with its first argument, and returns what a test gives."""

    def __init__(self, calls, name, **answers):
        self._calls, self._name, self._answers = calls, name, answers

    def __getattr__(self, method):
        if method.startswith("__"):
            raise AttributeError(method)

        def call(*arguments, **_):
            self._calls.append((f"{self._name}.{method}", *map(short, arguments[:1])))
            answer = self._answers.get(method)
            return answer(*arguments) if callable(answer) else answer

        return call


def short(value):
    match value:
        case PodView():
            return value.key.name
        case Key():
            return value.name
        case {"metadata": metadata}:
            return metadata["name"]
        case Change():
            return "change"
    return value


def view(uid="u", *, node="n", phase="Running", ip="", deleting=False, **spec):
    metadata = {
        "name": "p",
        "namespace": "d",
        "uid": uid,
        **({"deletionTimestamp": "2030-01-01T00:00:30Z"} if deleting else {}),
    }
    status = {"phase": phase, **({"podIP": ip} if ip else {})}
    return PodView.of(
        {
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}], **spec},
            "status": status,
        }
    )


def node(*images, active=True):
    annotations = dict([SIMULATED_NODE_ANNOTATION]) if active else {}
    return {"metadata": {"name": "n", "annotations": annotations}, "status": {"images": [*images]}}


class Runner:
    """The parts of `SimulatedPods`, whose methods run on them."""

    def __init__(self, *, details=True, has_stages=False, **answers):
        self.calls = []
        for name in [
            "admitted_pods",
            "counters",
            "memory_pressure",
            "disk_pressure",
            "images",
            "node_images",
            "loop",
            "runtime",
            "registry",
            "status_writer",
            "recorder",
            "handlers",
            "objects",
            "predictions",
            "evictions",
            "static_pods",
        ]:
            setattr(self, f"_{name}", Part(self.calls, name, **answers.get(name, {})))
        self._registry.addresses = Part(self.calls, "addresses")
        self._records, self._clock = Records(), SteppedClock()
        self._details, self._has_stages = details, has_stages
        self.cached = answers.get("cached", {})
        self._pods = SimpleNamespace(
            lister=SimpleNamespace(
                get=lambda *key: self.cached.get(key), by_index=lambda *_: [*self.cached.values()]
            )
        )

    def __getattr__(self, name):
        method = getattr(SimulatedPods, name)
        return lambda *arguments: method(self, *arguments)

    def names(self):
        return [" ".join(map(str, call)) for call in self.calls]


ALWAYS = ["admitted_pods.on_change change", "counters.on_pod_change change"]
REMOVED = ["addresses.release u", "runtime.remove_pod u"]
CACHED = ["status_writer.note_cached p"]
QUEUED = ["loop.add p"]


@pytest.mark.parametrize(
    ("old", "new", "answers", "calls"),
    [
        (None, view(), {}, [*CACHED, *QUEUED]),
        (None, view(node=""), {}, []),
        (view(), None, {}, REMOVED),
        (view(), view("v"), {}, [*REMOVED, "status_writer.is_own p", *CACHED, *QUEUED]),
        (view(), view(), {}, ["status_writer.is_own p", *CACHED, *QUEUED]),
        (view(), view(), {"status_writer": {"is_own": True}}, ["status_writer.is_own p", *CACHED, "runtime.may_change p"]),
        (
            view(),
            view(),
            {"status_writer": {"is_own": True}, "runtime": {"may_change": True}},
            ["status_writer.is_own p", *CACHED, "runtime.may_change p", *QUEUED],
        ),
        (
            view(),
            view(),
            {"status_writer": {"is_own": True}, "has_stages": True},
            ["status_writer.is_own p", *CACHED, *QUEUED],
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("details", [True, False])
def test_change_of_a_pod(old, new, answers, calls, details):
    runner = Runner(details=details, **answers)
    runner._records.put("u", "kept")
    runner._on_pod_change(Change(old, new))
    pressure = ["memory_pressure.on_pod_change change"] if details else []
    assert runner.names() == [*ALWAYS, *pressure, *calls]
    assert (runner._records.find("u", str) is None) is ("addresses.release u" in calls)


@pytest.mark.parametrize(
    ("pod", "call"),
    [
        (view(ip="10.0.0.1"), ["addresses.record u"]),
        (view(ip="10.0.0.1", hostNetwork=True), []),
        (view(), []),
        (view(ip="10.0.0.1", phase="Succeeded"), ["addresses.release u"]),
    ],
)
def test_address_of_a_pod_is_recorded_until_it_ends(pod, call):
    runner = Runner()
    runner._record_address(pod)
    assert runner.names() == call


FORGOTTEN = [
    "admitted_pods.forget_node n",
    "memory_pressure.forget_node n",
    "disk_pressure.forget_node n",
    "counters.forget n",
    "images.forget_node n",
]
LACKS = {"registry": {"lacks_pod_cidr": lambda tree: "lacks" in tree["status"]["images"]}}
NOTED = ["images.note_status n"]


@pytest.mark.parametrize(
    ("old", "new", "calls"),
    [
        (node(), None, FORGOTTEN),
        (None, node(), QUEUED),
        (None, node(active=False), []),
        (node(), node(), []),
        (node(), node(active=False), QUEUED),
        (node(active=False), node(), QUEUED),
        (node(), node("a"), [*NOTED, "node_images.add n"]),
        (node("lacks"), node(), [*NOTED, "node_images.add n", *QUEUED]),
        (node("lacks"), node("lacks"), []),
        (node(), node("lacks"), [*NOTED, "node_images.add n"]),
    ],
)
@pytest.mark.parametrize("details", [True, False])
def test_change_of_a_node(old, new, calls, details):
    runner = Runner(details=details, cached={KEY: view()}, **LACKS)
    runner._on_node_change(Change(old, new))
    expected = [call for call in calls if details or "node_images" not in call]
    assert [call for call in runner.names() if "lacks_pod_cidr" not in call] == expected


@pytest.mark.parametrize("details", [True, False])
def test_program_that_is_not_simulated_is_reported_once(details):
    runner = Runner(details=details)
    tree = view().object
    runner._on_unknown_program(tree, "c", "foo", "fails")
    runner._on_unknown_program(tree, "c", "foo", "fails")
    event = ["recorder.record_on n"] if details else []
    assert runner.names() == [
        "objects.note_unknown_program p", *event, *(["loop.add p"] if details else []), "objects.note_unknown_program p", *event
    ]  # fmt: skip
    assert len(runner._live_assumptions("u")) == int(details)
    assert runner._live_assumptions("other") == ()


def test_program_of_an_unknown_container_is_not_reported():
    runner = Runner()
    runner._report_unknown_program(view().object, "other", "foo", "fails")
    assert runner.calls == []


@pytest.mark.parametrize("details", [True, False])
def test_failure_of_a_probe_is_an_event_of_the_container(details):
    runner = Runner(details=details)
    runner._on_probe_failure(view().object, "c", ProbeResult(is_success=False, message="m"))
    assert runner.names() == (["recorder.record_on n"] if details else [])
    runner.calls.clear()
    runner._preempt(view())
    assert runner.names() == (["recorder.record_on n"] if details else []) + QUEUED


@pytest.mark.parametrize(
    ("pod", "answers", "is_synced"),
    [
        (view(), {}, True),
        (None, {}, False),
        (view(), {"status_writer": {"is_outdated": True}}, False),
        (view(), {"registry": {"active_node": None}}, False),
        (view(), {"registry": {"active_node": node("lacks"), **LACKS["registry"]}}, False),
        (view(ip="10.0.0.1"), {"registry": {"active_node": node("lacks"), **LACKS["registry"]}}, True),
        (view(hostNetwork=True), {"registry": {"active_node": node("lacks"), **LACKS["registry"]}}, True),
    ],
)
async def test_pod_that_is_due_on_its_node(pod, answers, is_synced):
    given = {"registry": {"active_node": node()}, **answers}
    synced = []

    async def sync(*arguments):
        synced.append(arguments)
        runner._clock.advance(2)
        return timedelta(seconds=7)

    counted = []
    counters = SimpleNamespace(record_sync=lambda _, seconds: counted.append(seconds))
    runner = Runner(cached={} if pod is None else {KEY: pod}, counters={"find": lambda _: counters}, **given)
    runner._sync_pod = sync
    assert await runner._reconcile(KEY) == (timedelta(seconds=7) if is_synced else None)
    assert bool(synced) is is_synced
    skips = pod is None or "status_writer" in answers
    assert counted == ([] if skips else [2.0 if is_synced else 0.0])
    assert ("status_writer.note_cached p" in runner.names()) is not skips


@pytest.mark.parametrize("later", [None, view("v")])
async def test_pod_that_goes_meanwhile_leaves_nothing(later):
    runner = Runner(cached={KEY: view()}, registry={"active_node": node()}, counters={"find": None})

    async def sync(*_):
        runner._records.put("u", "kept")
        runner.cached = {KEY: later} if later else {}

    runner._sync_pod = sync
    await runner._reconcile(KEY)
    assert runner._records.find("u", str) is None
    assert "status_writer.note_cached p" not in runner.names()


def test_containers_do_what_a_step_demands():
    runner = Runner()
    actions = (
        StartContainer("c", 2),
        StopContainer("c", 5.0),
        StopContainer("c"),
        RunHook("c", "preStop", 0),
    )
    graces = []
    runner._runtime.stop_container = lambda _pod, _name, grace: graces.append(grace)
    runner._act(view(deleting=True).object, Step(actions=actions), NOW)
    assert runner.names() == [
        "runtime.update_pod p",
        "runtime.start_container p",
        "handlers.apply p",
        "handlers.follow p",
    ]
    assert graces == [5.0, 30.0]


@pytest.mark.parametrize(
    ("pod", "answers", "decision"),
    [
        (view(), {}, "step"),
        (view(), {"evictions": {"find": "eviction"}}, "evict"),
        (view(deleting=True), {"evictions": {"find": "eviction"}}, "step"),
        (view(phase="Failed"), {"evictions": {"find": "eviction"}}, "step"),
        (view(), {"admitted_pods": {"preemption_time": NOW}}, "preempt"),
        (view(deleting=True), {"admitted_pods": {"preemption_time": NOW}}, "step"),
        (view(phase="Failed"), {"admitted_pods": {"preemption_time": NOW}}, "step"),
        (view(), {"evictions": {"find": "eviction"}, "admitted_pods": {"preemption_time": NOW}}, "evict"),
    ],
)
def test_pod_is_evicted_or_preempted_while_it_runs(pod, answers, decision, monkeypatch):
    decisions = []
    for name in ("step", "evict", "preempt"):
        monkeypatch.setattr(pods.pod_lifecycle, name, lambda *_, name=name: decisions.append(name))
    Runner(**answers)._next_step(pod, None, NOW)
    assert decisions == [decision]


STATUS = {"phase": "Running"}


@pytest.mark.parametrize(
    ("owns", "deleting", "status", "expected"),
    [
        (True, True, None, (None, [])),
        (True, False, STATUS, (timedelta(), ["status_writer.execute p"])),
        (True, False, None, (timedelta(seconds=3), ["images.note_step p", "runtime.update_pod p"])),
        (False, True, STATUS, (timedelta(seconds=3), ["images.note_step p", "runtime.update_pod p"])),
    ],
)
async def test_mirror_pod_is_deleted_and_restored_alone(owns, deleting, status, expected):
    async def execute(*_):
        return view().object

    now = SteppedClock().now()
    step = Step(requeue_at=now + timedelta(seconds=3))
    runner = Runner(
        static_pods={"owns": owns, "status_to_restore": status, "time_of_step": now},
        status_writer={"execute": execute},
        admitted_pods={"admit": step},
        images={"begin": "images"},
    )
    delay = await runner._sync_by_model(KEY, view(deleting=deleting), node())
    names = runner.names()
    assert (delay, [name for name in expected[1] if name in names]) == expected
    assert ("admitted_pods.admit p" in names) is ("images.note_step p" in expected[1])


async def test_pod_whose_status_is_not_written_does_nothing():
    async def execute(*_):
        return None

    runner = Runner(
        status_writer={"execute": execute},
        admitted_pods={"admit": Step()},
        static_pods={"owns": False, "time_of_step": NOW},
    )
    assert await runner._sync_by_model(KEY, view(), node()) is None
    assert "runtime.update_pod p" not in runner.names()


def test_objects_that_may_have_been_created_are_named():
    event = pods._not_simulated({"x": "the container a runs", "y": "b"})
    assert isinstance(event, EmitEvent)
    assert "It starts, because the container a runs a program that is not simulated" in event.message
