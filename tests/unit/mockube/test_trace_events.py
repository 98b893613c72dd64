"""The history of a cluster as trace events."""

import orjson

from mockube.trace_events import Recorded, state_of, trace

TIME = "2026-11-28T12:00:{:02d}.000000Z"


def change(
    second, kind="Deployment", name="web", *, type_="ADDED", patch=None, uid="1", user="bob", **metadata
):
    resource = f"{kind.lower()}s"
    spec = {"replicas": 1} if kind == "Deployment" else {}
    tree = {"metadata": {"name": name, "uid": uid, **metadata}, "spec": spec}
    operations = [{"op": "add", "path": "", "value": tree}] if type_ == "ADDED" else patch
    about = {"kind": kind, "resource": resource, "namespace": "shop", "name": name, "uid": uid}
    return {
        "revision": second,
        "time": TIME.format(second),
        "type": type_,
        "object": about,
        "author": {"user": user, "verb": "patch", "subresource": "status"},
        "patch": operations,
    }


def request(second, seconds=1.0, user="bob", **others):
    spec = {
        "time": TIME.format(second),
        "user": user,
        "verb": "get",
        "resource": "pods",
        "namespace": "shop",
        "name": "a",
    }
    return {"spec": {**spec, **others}, "status": {"code": 200, "seconds": seconds}}


def events(phase, **recorded):
    found = orjson.loads(trace(Recorded(**{"changes": [], **recorded})))["traceEvents"]
    return [event for event in found if event["ph"] == phase]


def tracks(**recorded):
    """Return the tracks with their groups, in their order."""
    named = events("M", **recorded)
    groups = {event["pid"]: event["args"]["name"] for event in named if event["name"] == "process_name"}
    return [
        (groups[event["pid"]], event["args"]["name"]) for event in named if event["name"] == "thread_name"
    ]


def test_objects_are_grouped_by_owner():
    owner = [{"uid": "1", "controller": True}]
    changes = [
        change(1, "Pod", "a", uid="2", ownerReferences=owner),
        change(2),
        change(3, "Job", "other", uid="3"),
    ]
    assert tracks(changes=changes) == [
        ("Deployment shop/web", "Deployment shop/web"),
        ("Deployment shop/web", "Pod shop/a"),
        ("Job shop/other", "Job shop/other"),
    ]


def test_states_are_slices_and_writes_are_marks():
    ready = [{"op": "add", "path": "/status", "value": {"readyReplicas": 1}}]
    changes = [change(1), change(3, type_="MODIFIED", patch=ready, user="ann"), change(4, type_="DELETED")]
    slices = [(each["ts"], each["dur"], each["name"]) for each in events("X", changes=changes)]
    assert slices == [(0, 2_000_000, "0/1 ready"), (2_000_000, 1_000_000, "1/1 ready")]
    marks = events("i", changes=changes)
    assert [(each["ts"], each["name"]) for each in marks] == [
        (0, "ADDED by bob"),
        (2_000_000, "MODIFIED by ann"),
        (3_000_000, "DELETED by bob"),
    ]
    assert marks[1]["args"] == {
        "author": "ann",
        "verb": "patch/status",
        "revision": 3,
        "patch": ['/status = {"readyReplicas":1}'],
    }


def test_requests_of_a_client_that_overlap_have_tracks_of_their_own():
    requests = [request(1, 3.0), request(2, 1.0), request(4, 1.0, user="ann"), request(5, 1.0)]
    assert tracks(requests=requests) == [("Requests", "ann"), ("Requests", "bob"), ("Requests", "bob (2)")]
    slices = events("X", requests=requests)
    assert [(each["ts"], each["dur"], each["tid"], each["name"]) for each in slices] == [
        (0, 3_000_000, 2, "get pods shop/a"),
        (1_000_000, 1_000_000, 3, "get pods shop/a"),
        (3_000_000, 1_000_000, 1, "get pods shop/a"),
        (4_000_000, 1_000_000, 2, "get pods shop/a"),
    ]


def test_watch_in_progress_lasts_until_the_end():
    watch = {"spec": {"time": TIME.format(1), "user": "bob", "verb": "watch", "resource": "pods"}}
    (slice_,) = [
        each for each in events("X", requests=[watch, request(2, 7.0)]) if each["name"] == "watch pods"
    ]
    assert (slice_["ts"], slice_["dur"]) == (0, 8_000_000)


def test_changes_before_the_first_time_are_at_it():
    changes = [change(1), change(2, "Job", "b", uid="2"), change(5, "Job", "c", uid="3")]
    for each in changes[:2]:
        del each["time"]
    assert [each["ts"] for each in events("i", changes=changes, requests=[request(4)])] == [1_000_000] * 3
    for each in changes:
        each.pop("time", None)
    assert [each["ts"] for each in events("i", changes=changes, requests=[request(4)])] == [1_000_000] * 3


def test_request_without_a_response_ends_when_its_client_left():
    left = [request(second, 0.5) for second in (1, 2, 3)]
    for each in left:
        del each["status"]["code"]
    slices = events("X", requests=[*left, request(9)])
    assert [(each["dur"], each["name"]) for each in slices[:3]] == [
        (500_000, "get pods shop/a, no response")
    ] * 3
    assert len(tracks(requests=left)) == 1


def test_mark_has_its_own_time_or_that_of_the_change_before_it():
    marks = [
        {"metadata": {"name": "own"}, "spec": {"revision": 1, "time": TIME.format(6)}},
        {"metadata": {"name": "older"}, "spec": {"revision": 4}},
        {"metadata": {"name": "first"}, "spec": {"revision": 1}},
    ]
    changes = [change(2), change(3, "Job", "b", uid="2"), change(5, "Job", "c", uid="3")]
    found = {each["name"]: each["ts"] for each in events("i", changes=changes, marks=marks)}
    assert found["Mark own"] == 4_000_000
    assert found["Mark older"] == 1_000_000
    assert found["Mark first"] == 0
    assert "Mark own" in {each["name"] for each in events("i", marks=marks)}


def test_reconciliations_marks_and_faults_are_shown():
    one = {
        "name": "web",
        "namespace": "shop",
        "time": TIME.format(2),
        "seconds": 0.5,
        "result": "success",
        "actions": ["create pods"],
    }
    controllers = [
        {"metadata": {"name": "job"}, "status": {"newest": [one]}},
        {"metadata": {"name": "idle"}, "status": {}},
    ]
    marks = [{"metadata": {"name": "before"}, "spec": {"revision": 1}}]
    faults = [
        {"metadata": {"name": "slow", "creationTimestamp": "2026-11-28T12:00:03Z"}, "spec": {"delay": 1}}
    ]
    recorded = {"changes": [change(1)], "controllers": controllers, "marks": marks, "faults": faults}
    (slice_,) = [each for each in events("X", **recorded) if each["cat"] == "success"]
    assert (slice_["ts"], slice_["dur"], slice_["name"]) == (1_000_000, 500_000, "shop/web")
    assert slice_["args"] == {"result": "success", "actions": ["create pods"]}
    global_marks = [(each["ts"], each["name"]) for each in events("i", **recorded) if each["s"] == "g"]
    assert global_marks == [(0, "Mark before"), (2_000_000, "Fault slow")]


def test_bytes_do_not_depend_on_the_order_of_requests():
    requests = [request(1, user="ann"), request(1, user="bob"), request(3)]
    assert trace(Recorded(changes=[], requests=requests)) == trace(
        Recorded(changes=[], requests=requests[::-1])
    )


def test_nothing_is_an_empty_trace():
    assert orjson.loads(trace(Recorded(changes=[])))["traceEvents"] == []


def test_owners_in_a_circle_end():
    changes = [
        change(1, "Job", "a", uid="1", ownerReferences=[{"uid": "2", "controller": True}]),
        change(2, "Job", "b", uid="2", ownerReferences=[{"uid": "1", "controller": True}]),
    ]
    assert len(tracks(changes=changes)) == 2


def test_states_are_those_of_kubectl():
    def pod(**status):
        return state_of({"metadata": {}, "spec": {"containers": []}, "status": status})

    def other(spec=None, **status):
        return state_of({"metadata": {}, "spec": spec or {}, "status": status})

    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    assert pod(phase="Pending", **waiting) == "ImagePullBackOff"
    assert pod(phase="Running") == "Running, not ready"
    assert pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False"}]) == "Unschedulable"
    assert pod(phase="Failed", reason="Evicted") == "Evicted"
    assert state_of({"metadata": {"deletionTimestamp": "2026-11-28T12:00:03Z"}}) == "Terminating"
    assert other() == ""
    assert other(conditions=[{"type": "Ready", "status": "Unknown"}]) == "NotReady"
    assert other({"completions": 2}, succeeded=1) == "1/2 succeeded"
    assert other({"completions": 2}, conditions=[{"type": "Complete", "status": "True"}]) == "Complete"
    assert other({"replicas": 3}, readyReplicas=1) == "1/3 ready"
    assert other(numberReady=1, desiredNumberScheduled=2) == "1/2 ready"
    assert other(phase="Bound") == "Bound"
