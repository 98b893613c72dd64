"""In-place updates of containers with launch priorities, in batches."""

import orjson
import pytest

from mockube.client.podview import PodView
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.workloads.pod_steps import NO_STEP
from mockube.packs.kruise.inplace import record
from mockube.packs.kruise.inplace.record import TemplateChange
from mockube.packs.kruise.inplace.update import (
    UpdateRequest,
    is_finished,
    next_step,
    start_update,
)
from mockube.packs.kruise.launch_priority import barrier_variable

NOW = SteppedClock().now()
TIME = "2030-01-01T00:00:00Z"


def pod(priorities, images, *, ready=(), ran=None, annotations=None):
    """A pod whose containers have these priorities and images, and statuses with the images of `ran`."""
    containers = [
        {"name": name, "image": images[name]}
        | ({} if priority is None else {"env": [barrier_variable("web-x", priority)]})
        for name, priority in priorities.items()
    ]
    statuses = [
        {"name": name, "image": image, "imageID": f"id-{image}", "ready": name in ready}
        for name, image in (ran or images).items()
    ]
    conditions = [{"type": "InPlaceUpdateReady", "status": "False"}]
    metadata = {"name": "web-x", "namespace": "default", "uid": "u", "annotations": annotations or {}}
    gates = [{"conditionType": "InPlaceUpdateReady"}]
    return PodView.of(
        {
            "metadata": metadata,
            "spec": {"containers": containers, "readinessGates": gates},
            "status": {"phase": "Running", "conditions": conditions, "containerStatuses": statuses},
        }
    )


def started(subject, **images):
    change = TemplateChange(revision="web-2", images=images, labels={}, annotations={})
    *_, made = start_update(subject, UpdateRequest(change=change, labels={}, grace_seconds=0), NOW)
    return made


def images_of(patch):
    return {container["name"]: container["image"] for container in patch.body["spec"]["containers"]}


def state_of(patch):
    return orjson.loads(patch.body["metadata"]["annotations"][record.ANNOTATION_STATE])


@pytest.mark.parametrize(
    ("priorities", "first"),
    [
        pytest.param({"a": None, "b": None}, {"a", "b"}, id="no priorities: all at once"),
        pytest.param({"a": 0, "b": 10}, {"b"}, id="the highest priority first"),
        pytest.param({"a": 5, "b": 5, "c": -1}, {"a", "b"}, id="all of the highest priority"),
        pytest.param({"a": None, "b": 1, "c": 2}, {"a", "c"}, id="without a priority: at once"),
        pytest.param({"a": -2, "b": -1}, {"b"}, id="negative priorities"),
    ],
)
def test_first_batch_has_highest_priority(priorities, first):
    subject = pod(priorities, dict.fromkeys(priorities, "x:1"))
    made = started(subject, **dict.fromkeys(priorities, "x:2"))
    assert {*images_of(made)} == first
    assert {*state_of(made).get("nextContainerImages", {})} == {*priorities} - first


def test_unchanged_container_does_not_delay_others():
    made = started(pod({"a": 0, "b": 10}, {"a": "x:1", "b": "y:1"}), a="x:2")
    assert images_of(made) == {"a": "x:2"}
    assert "nextContainerImages" not in state_of(made)


def test_state_records_batches():
    made = started(pod({"a": 0, "b": 10}, {"a": "x:1", "b": "y:1"}), a="x:2", b="y:2")
    assert state_of(made) == {
        "revision": "web-2",
        "updateTimestamp": TIME,
        "lastContainerStatuses": {"b": {"imageID": "id-y:1"}},
        "updateImages": True,
        "nextContainerImages": {"a": "x:2"},
        "preCheckBeforeNext": {"containersRequiredReady": ["b"]},
        "containerBatchesRecord": [{"timestamp": TIME, "containers": ["b"]}],
    }


def in_progress(*, ready, ran):
    """A pod whose first batch, the container b, is updated."""
    priorities = {"a": 0, "b": 10}
    made = started(pod(priorities, {"a": "x:1", "b": "y:1"}), a="x:2", b="y:2")
    annotations = made.body["metadata"]["annotations"]
    return pod(priorities, {"a": "x:1", "b": "y:2"}, ready=ready, ran=ran, annotations=annotations)


@pytest.mark.parametrize(
    ("ready", "ran"),
    [
        pytest.param(("a", "b"), {"a": "x:1", "b": "y:1"}, id="the old image still runs"),
        pytest.param(("a",), {"a": "x:1", "b": "y:2"}, id="the new container is not ready"),
        pytest.param((), {"a": "x:1", "b": "y:2"}, id="none is ready"),
    ],
)
def test_next_batch_waits_until_containers_are_ready(ready, ran):
    waiting = in_progress(ready=ready, ran=ran)
    assert next_step(waiting, NOW, revision="web-2") == NO_STEP
    assert not is_finished(waiting)


def test_next_batch_follows():
    (made,) = next_step(
        in_progress(ready=("b",), ran={"a": "x:1", "b": "y:2"}), NOW, revision="web-2"
    ).patches
    assert images_of(made) == {"a": "x:2"}
    assert state_of(made) == {
        "revision": "web-2",
        "updateTimestamp": TIME,
        "lastContainerStatuses": {"b": {"imageID": "id-y:1"}, "a": {"imageID": "id-x:1"}},
        "updateImages": True,
        "containerBatchesRecord": [
            {"timestamp": TIME, "containers": ["b"]},
            {"timestamp": TIME, "containers": ["a"]},
        ],
    }


def test_gate_opens_after_last_batch():
    first = in_progress(ready=("b",), ran={"a": "x:1", "b": "y:2"})
    (made,) = next_step(first, NOW, revision="web-2").patches
    images = {"a": "x:2", "b": "y:2"}
    done = pod({"a": 0, "b": 10}, images, annotations=made.body["metadata"]["annotations"])
    (opened,) = next_step(done, NOW, revision="web-2").patches
    assert opened.subresource == "status"
    assert is_finished(done)


def test_superseding_update_keeps_images_of_later_batches():
    first = in_progress(ready=(), ran={"a": "x:1", "b": "y:1"})
    made = started(first, b="y:3")
    assert images_of(made) == {"b": "y:3"}
    assert state_of(made)["nextContainerImages"] == {"a": "x:2"}
    assert state_of(made)["preCheckBeforeNext"] == {"containersRequiredReady": ["b"]}


@pytest.mark.parametrize("images", [{}, {"a": "x:3"}])
def test_superseding_update_of_later_batch_waits_for_the_first(images):
    first = in_progress(ready=("a",), ran={"a": "x:1", "b": "y:2"})
    made = started(first, **images)
    assert "spec" not in made.body
    state = state_of(made)
    assert state["nextContainerImages"] == {"a": "x:2", **images}
    assert state["preCheckBeforeNext"] == {"containersRequiredReady": ["b"]}
    assert state["lastContainerStatuses"] == {"b": {"imageID": "id-y:1"}}


def test_delayed_update_keeps_images_of_later_batches():
    first = in_progress(ready=(), ran={"a": "x:1", "b": "y:1"})
    change = TemplateChange(revision="web-3", images={"b": "y:3"}, labels={}, annotations={})
    *_, made = start_update(first, UpdateRequest(change=change, labels={}, grace_seconds=5), NOW)
    assert state_of(made)["nextContainerImages"] == {"a": "x:2"}


@pytest.mark.parametrize(
    "state",
    [
        '{"nextContainerImages": [], "preCheckBeforeNext": []}',
        '{"nextContainerImages": {"a": 1}}',
        '{"nextContainerImages": {}, "preCheckBeforeNext": 3, "containerBatchesRecord": 3}',
    ],
)
def test_unreadable_batches_count_as_none(state):
    subject = pod({"a": 0}, {"a": "x:1"}, ready=("a",), annotations={record.ANNOTATION_STATE: state})
    assert is_finished(subject)
    (opened,) = next_step(subject, NOW, revision="web-2").patches
    assert opened.subresource == "status"


def test_unreadable_records_do_not_stop_next_batch():
    state = '{"nextContainerImages": {"a": "x:2"}, "preCheckBeforeNext": 3, "containerBatchesRecord": 3}'
    subject = pod({"a": 0}, {"a": "x:1"}, annotations={record.ANNOTATION_STATE: state})
    (made,) = next_step(subject, NOW, revision="web-2").patches
    assert images_of(made) == {"a": "x:2"}
