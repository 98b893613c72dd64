"""In-place update of one pod: readiness gate, update record and completion."""

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
    is_in_service,
    next_step,
    start_update,
)

NOW = SteppedClock().now()
LATER = "2030-01-01T00:00:00Z"
CHANGE = TemplateChange(
    revision="web-2", images={"c": "a:2"}, labels={"v": "2", "old": None}, annotations={"n": "1"}
)
SERVING = [{"type": "InPlaceUpdateReady", "status": "True"}, {"type": "Ready", "status": "True"}]


def state(**last):
    return orjson.dumps(
        {"revision": "web-2", "updateTimestamp": LATER, "lastContainerStatuses": last}
    ).decode()


def pod(*, image="a:2", conditions=SERVING, gate=True, annotations=None, status=None):
    statuses = [{"name": "c", "image": "a:1", "imageID": "id-1"}] if status is None else status
    spec = {"containers": [{"name": "c", "image": image}]}
    if gate:
        spec["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
    return PodView.of(
        {
            "metadata": {
                "name": "web-x",
                "namespace": "default",
                "uid": "u",
                "resourceVersion": "7",
                "annotations": annotations or {},
            },
            "spec": spec,
            "status": {"phase": "Running", "conditions": conditions, "containerStatuses": statuses},
        }
    )


def update_order(grace=0):
    return UpdateRequest(change=CHANGE, labels={"controller-revision-hash": "web-2"}, grace_seconds=grace)


# --- start_update


def test_gate_closes_before_pod_changes():
    shut, made = start_update(pod(), update_order(), NOW)
    assert (shut.subresource, made.subresource) == ("status", "")
    assert shut.body["metadata"] == {"uid": "u"}
    pod_conditions = {it["type"]: (it["status"], it["reason"]) for it in shut.body["status"]["conditions"]}
    assert pod_conditions == {
        "InPlaceUpdateReady": ("False", "StartInPlaceUpdate"),
        "Ready": ("False", "ReadinessGatesNotReady"),
    }


def test_update_patch_has_labels_and_images():
    *_, made = start_update(pod(), update_order(), NOW)
    labels = {
        "v": "2",
        "old": None,
        "controller-revision-hash": "web-2",
        "lifecycle.apps.kruise.io/state": "Updating",
    }
    assert made.body["metadata"]["labels"] == labels
    assert made.body["spec"] == {"containers": [{"name": "c", "image": "a:2"}]}
    annotations = made.body["metadata"]["annotations"]
    assert annotations["n"] == "1"
    assert orjson.loads(annotations["apps.kruise.io/inplace-update-state"]) == {
        "revision": "web-2",
        "updateTimestamp": LATER,
        "lastContainerStatuses": {"c": {"imageID": "id-1"}},
        "updateImages": True,
        "containerBatchesRecord": [{"timestamp": LATER, "containers": ["c"]}],
    }


def test_pod_without_gate_has_one_patch():
    assert len(start_update(pod(gate=False), update_order(), NOW)) == 1


def test_unready_pod_gets_gate_condition_only():
    shut, _ = start_update(pod(conditions=[]), update_order(), NOW)
    assert [it["type"] for it in shut.body["status"]["conditions"]] == ["InPlaceUpdateReady"]


def test_pending_update_round_trips():
    *_, made = start_update(pod(), update_order(grace=10), NOW)
    assert "spec" not in made.body
    assert "v" not in made.body["metadata"]["labels"]
    waits = record.delayed_change(pod(annotations=made.body["metadata"]["annotations"]))
    assert waits == (CHANGE, 10)


# --- next_step


def step_after_grace(seconds_ago, *, revision="web-2"):
    clock = SteppedClock()
    *_, made = start_update(pod(image="a:1"), update_order(grace=10), clock.now())
    clock.advance(seconds_ago)
    patient = pod(image="a:1", annotations=made.body["metadata"]["annotations"])
    return next_step(patient, clock.now(), revision=revision)


def test_update_waits_for_grace_period():
    found = step_after_grace(3)
    assert (found.patches, found.requeue_after.total_seconds()) == ((), 7)


def test_update_is_applied_after_grace_period():
    (made,) = step_after_grace(10).patches
    assert made.body["spec"] == {"containers": [{"name": "c", "image": "a:2"}]}
    assert made.body["metadata"]["annotations"][record.ANNOTATION_GRACE] is None
    assert "lastContainerStatuses" in made.body["metadata"]["annotations"][record.ANNOTATION_STATE]


def test_superseded_pending_update_is_dropped():
    (dropped,) = step_after_grace(3, revision="web-3").patches
    assert dropped.body["metadata"] == {"uid": "u", "annotations": {record.ANNOTATION_GRACE: None}}


@pytest.mark.parametrize("spoiled", ["{", "[]", '{"revision": 1}', '{"revision": "r", "metaDataPatch": "!"}'])
def test_unreadable_pending_update_is_dropped(spoiled):
    (dropped,) = next_step(pod(annotations={record.ANNOTATION_GRACE: spoiled}), NOW, revision="r").patches
    assert dropped.body["metadata"]["annotations"] == {record.ANNOTATION_GRACE: None}


def test_new_pod_opens_gate():
    (opened,) = next_step(pod(conditions=[]), NOW, revision="").patches
    assert opened.subresource == "status"
    assert opened.body["status"]["conditions"] == [
        {"type": "InPlaceUpdateReady", "status": "True", "lastTransitionTime": LATER}
    ]


def test_ready_pod_needs_no_step():
    assert next_step(pod(), NOW, revision="") == NO_STEP
    assert next_step(pod(conditions=[], gate=False), NOW, revision="") == NO_STEP


def test_updated_pod_opens_gate_again():
    shut = [{"type": "InPlaceUpdateReady", "status": "False", "reason": "StartInPlaceUpdate"}]
    annotations = {record.ANNOTATION_STATE: state(c={"imageID": "id-1"})}
    assert next_step(pod(conditions=shut, annotations=annotations), NOW, revision="") == NO_STEP
    anew = [{"name": "c", "image": "a:2", "imageID": "id-2"}]
    (opened,) = next_step(
        pod(conditions=shut, annotations=annotations, status=anew), NOW, revision=""
    ).patches
    (pod_conditions,) = opened.body["status"]["conditions"]
    assert (pod_conditions["status"], pod_conditions["reason"]) == ("True", None)


# --- completion


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param([{"name": "c", "image": "a:1", "imageID": "id-1"}], False, id="as before"),
        pytest.param([{"name": "c", "image": "a:2", "imageID": "id-2"}], True, id="another image"),
        pytest.param(
            [{"name": "c", "image": "a:2", "imageID": "id-1"}], True, id="another name of the image"
        ),
        pytest.param(
            [{"name": "d", "image": "a:2", "imageID": "id-2"}], False, id="no status of the container"
        ),
    ],
)
def test_is_finished_compares_image_ids(status, expected):
    annotations = {record.ANNOTATION_STATE: state(c={"imageID": "id-1"})}
    assert is_finished(pod(annotations=annotations, status=status)) is expected


@pytest.mark.parametrize(
    ("named", "reported"), [("app", "app:latest"), ("app:latest", "app"), ("app", "app")]
)
def test_image_without_tag_is_latest(named, reported):
    status = [{"name": "c", "image": reported, "imageID": ""}]
    assert is_finished(pod(image=named, annotations={record.ANNOTATION_STATE: state(c={})}, status=status))


def test_waiting_update_is_not_finished():
    assert not is_finished(pod(annotations={record.ANNOTATION_GRACE: "{}"}))


def test_pod_without_update_is_finished():
    assert is_finished(pod())
    assert is_finished(pod(annotations={record.ANNOTATION_STATE: "spoiled"}))


def test_in_service_needs_conditions_and_gate():
    assert is_in_service(pod(), 0, NOW)
    assert not is_in_service(
        pod(conditions=[*SERVING[1:], {"type": "InPlaceUpdateReady", "status": "False"}]), 0, NOW
    )
    assert not is_in_service(pod(conditions=[]), 0, NOW)
    assert is_in_service(pod(conditions=SERVING[1:]), 0, NOW), "the readiness gate has no condition yet"
