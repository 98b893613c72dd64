"""The history of a cluster as Chrome's trace events, which Perfetto's viewer opens. Pure: the same objects make the same bytes.

A client, an object and a queue of a controller are tracks. Perfetto nests the slices of one track, so slices that overlap in part
have tracks of their own.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct, field

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import parse_micro_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.control_objects import LONG_VERBS
from mockube.history.authors import verb_of
from mockube.history.replay import ReplayedObject

_MAX_OPERATIONS: Final = 12
_MAX_VALUE: Final = 200
"""The operations of a patch, and the characters of a value, that a mark has."""
_NO_RESPONSE: Final = ", no response"
"""What the name of a request has whose client left, or whose connection was cut."""
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})


class Recorded(Struct, frozen=True, kw_only=True):
    """What a trace is made of: the objects of the control API."""

    changes: Sequence[ReadOnlyTree]
    """The specs of Changes, the oldest first."""
    requests: Sequence[ReadOnlyTree] = ()
    controllers: Sequence[ReadOnlyTree] = ()
    marks: Sequence[ReadOnlyTree] = ()
    faults: Sequence[ReadOnlyTree] = ()


class Slice(Struct, frozen=True, kw_only=True):
    """A span of time on a track, in microseconds since 1970."""

    begin: int
    end: int
    name: str
    category: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Mark(Struct, frozen=True, kw_only=True):
    """A moment on a track; without a track, of the whole trace."""

    time: int
    name: str
    category: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Track(Struct, kw_only=True):
    """A line of the viewer, in a group."""

    group: str
    name: str
    slices: list[Slice] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


def trace(recorded: Recorded) -> bytes:
    """Return the trace as JSON."""
    times = {
        change["revision"]: _microseconds(change["time"]) for change in recorded.changes if change.get("time")
    }
    end = _end(recorded, times)
    first = next(iter(times.values()), end)
    tracks = [
        *_request_tracks(recorded.requests, end),
        *_reconciliation_tracks(recorded.controllers),
        *_object_tracks(recorded.changes, first, end),
    ]
    global_marks = [*_marks(recorded.marks, times), *_faults(recorded.faults)]
    return orjson.dumps(
        {
            "displayTimeUnit": "ms",
            "otherData": {"program": "mockube trace"},
            "traceEvents": [*_events([lane for track in tracks for lane in _lanes(track)], global_marks)],
        }
    )


def _microseconds(text: str) -> int:
    """Return a time of the API in microseconds: a MicroTime has them, a Time does not."""
    time = parse_micro_time(text) if "." in text else parse_time(text)
    return round(time.timestamp() * 1e6)


def _end(recorded: Recorded, times: Mapping[int, int]) -> int:
    """Return the time of the last event, up to which states last."""
    requests = (
        _microseconds(each["spec"]["time"]) + _duration(each.get("status")) for each in recorded.requests
    )
    return max((*times.values(), *requests), default=0)


def _duration(status: ReadOnlyTree | None) -> int:
    return round(((status or {}).get("seconds") or 0.0) * 1e6)


# --- clients


def _request_tracks(requests: Sequence[ReadOnlyTree], end: int) -> Sequence[Track]:
    tracks: dict[tuple[str, str], Track] = {}
    for request in requests:
        spec = request["spec"]
        client = spec.get("user") or "(nobody)"
        group = "Watches and streams" if spec.get("verb") in LONG_VERBS else "Requests"
        track = tracks.setdefault((group, client), Track(group=group, name=client))
        track.slices.append(_request_slice(spec, request.get("status") or {}, end))
    return [tracks[key] for key in sorted(tracks)]


def _request_slice(spec: ReadOnlyTree, status: ReadOnlyTree, end: int) -> Slice:
    """Return the slice of a request; of one in progress, which has no status, up to the end."""
    begin, is_ended = _microseconds(spec["time"]), "seconds" in status
    target = "/".join(filter(None, (spec.get("resource"), spec.get("subresource")))) or spec.get("uri", "")
    about = "/".join(filter(None, (spec.get("namespace"), spec.get("name"))))
    name = " ".join(filter(None, (spec.get("verb") or "-", target, about)))
    details = {
        "uri": spec.get("uri"),
        "code": status.get("code"),
        "message": status.get("message"),
        "fault": status.get("fault"),
        "revision": status.get("revision"),
        "agent": spec.get("agent"),
        "auditID": spec.get("auditID"),
    }
    return Slice(
        begin=begin,
        end=begin + _duration(status) if is_ended else max(begin, end),
        name=f"{name}{_NO_RESPONSE}" if is_ended and "code" not in status else name,
        category="request" if status.get("code", 0) < 400 else "error",
        details={key: value for key, value in details.items() if value},
    )


# --- controllers


def _reconciliation_tracks(controllers: Sequence[ReadOnlyTree]) -> Iterator[Track]:
    for controller in sorted(controllers, key=meta.name):
        newest = controller["status"].get("newest") or ()
        if not newest:
            continue
        track = Track(group="Reconciliations, the newest of each queue", name=meta.name(controller))
        for each in newest:
            begin = _microseconds(each["time"])
            track.slices.append(
                Slice(
                    begin=begin,
                    end=begin + round(each["seconds"] * 1e6),
                    name="/".join(filter(None, (each.get("namespace"), each.get("name"))))
                    or meta.name(controller),
                    category=each["result"],
                    details={name: each[name] for name in ("result", "actions", "error") if each.get(name)},
                )
            )
        yield track


# --- objects


class _Lane(Struct, kw_only=True):
    """An object while its changes are replayed."""

    track: Track
    owner: str = ""
    """The uid of the owner; "" without one."""
    object: ReplayedObject = ReplayedObject()
    state: str = ""
    since: int = 0


def _object_tracks(changes: Sequence[ReadOnlyTree], first: int, end: int) -> Sequence[Track]:
    """Return the tracks of objects. A change without a time has that of the one before; those before the first time have this one."""
    lanes: dict[tuple[str, str, str], _Lane] = {}
    by_uid: dict[str, _Lane] = {}
    last = first
    for change in changes:
        about = change["object"]
        last = max(last, _microseconds(change["time"])) if change.get("time") else last
        key = (about["resource"], about.get("namespace", ""), about["name"])
        lane = lanes.get(key)
        if lane is None:
            name = "/".join(filter(None, (about.get("namespace"), about["name"])))
            lane = lanes[key] = _Lane(track=Track(group="", name=f"{about['kind']} {name}"))
        by_uid.setdefault(about.get("uid", ""), lane)
        _follow(lane, change, last)
    for lane in lanes.values():
        _end_state(lane, end)
        lane.track.group = _root(lane, by_uid).track.name
    return sorted(
        (lane.track for lane in lanes.values()),
        key=lambda track: (track.group, track.name != track.group, track.name),
    )


def _root(lane: _Lane, by_uid: Mapping[str, _Lane]) -> _Lane:
    for _ in range(10):  # owners may be a circle
        owner = by_uid.get(lane.owner) if lane.owner else None
        if owner is None:
            break
        lane = owner
    return lane


def _follow(lane: _Lane, change: ReadOnlyTree, time: int) -> None:
    """Add the mark of a change, and the state that ends with it."""
    author = change.get("author") or {}
    operations = change.get("patch") or ()
    details: dict[str, Any] = {
        "author": author.get("user", "(not known)"),
        "manager": author.get("manager"),
        "agent": author.get("agent"),
        "verb": verb_of(author),
        "reason": author.get("reason"),
        "revision": change["revision"],
    }
    if change["type"] == "MODIFIED":
        details["patch"] = [_operation(each) for each in operations[:_MAX_OPERATIONS]]
    lane.track.marks.append(
        Mark(
            time=time,
            name=f"{change['type']} by {author.get('user', '(not known)')}",
            category="write",
            details={name: value for name, value in details.items() if value},
        )
    )
    lane.object = lane.object.after(change)
    tree = lane.object.tree
    owner = meta.controller_of(tree) if tree is not None else None
    if owner is not None:
        lane.owner = owner["uid"]
    state = "" if tree is None else state_of(tree)
    if state != lane.state:
        _end_state(lane, time)
        lane.state, lane.since = state, time


def _end_state(lane: _Lane, time: int) -> None:
    if lane.state:
        lane.track.slices.append(
            Slice(begin=lane.since, end=max(time, lane.since), name=lane.state, category="state")
        )


def _operation(operation: ReadOnlyTree) -> str:
    if operation["op"] == "remove":
        return f"remove {operation['path']}"
    value = orjson.dumps(operation.get("value")).decode()
    return f"{operation['path']} = {value if len(value) <= _MAX_VALUE else value[:_MAX_VALUE] + '...'}"


def state_of(tree: ReadOnlyTree) -> str:
    """Return the state of an object in a word or two, as columns of kubectl say it; "" without one.

    It is read from the fields that an object has, so that custom kinds with the usual ones have states, too.
    """
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    if meta.is_deleting(tree):
        return "Terminating"
    if "containers" in spec:
        return _pod_state(tree, status)
    if "replicas" in spec:
        return f"{status.get('readyReplicas') or 0}/{spec['replicas']} ready"
    if "desiredNumberScheduled" in status:
        return f"{status.get('numberReady') or 0}/{status['desiredNumberScheduled']} ready"
    if done := next((name for name in ("Complete", "Failed") if conditions.is_true(tree, name)), ""):
        return done
    if "completions" in spec:
        return f"{status.get('succeeded') or 0}/{spec['completions']} succeeded"
    if conditions.get(tree, "Ready") is not None:
        return "Ready" if conditions.is_true(tree, "Ready") else "NotReady"
    phase = status.get("phase")
    return phase if isinstance(phase, str) else ""


def _pod_state(tree: ReadOnlyTree, status: ReadOnlyTree) -> str:
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for each in statuses:
        reason = ((each.get("state") or {}).get("waiting") or {}).get("reason")
        if reason and reason not in _STARTING:
            return str(reason)
    phase = status.get("phase") or "Pending"
    if phase == "Running":
        return "Running" if conditions.is_true(tree, "Ready") else "Running, not ready"
    if phase == "Pending" and conditions.is_false(tree, "PodScheduled"):
        return "Unschedulable"
    return str(status.get("reason") or phase)


# --- marks and faults


def _marks(marks: Sequence[ReadOnlyTree], times: Mapping[int, int]) -> Iterator[Mark]:
    """Yield the marks at their times, which an older server does not set: at that of the last change before, or the first one."""
    revisions = sorted(times)
    for mark in marks:
        revision, time = mark["spec"]["revision"], mark["spec"].get("time")
        if not time and not revisions:
            continue
        before = max(0, bisect_right(revisions, revision) - 1)
        yield Mark(
            time=_microseconds(time) if time else times[revisions[before]],
            name=f"Mark {meta.name(mark)}",
            category="mark",
            details={"revision": revision},
        )


def _faults(faults: Sequence[ReadOnlyTree]) -> Iterator[Mark]:
    for fault in faults:
        time = _microseconds(fault["metadata"]["creationTimestamp"])
        yield Mark(time=time, name=f"Fault {meta.name(fault)}", category="fault", details=fault["spec"])


# --- events of the format


def _lanes(track: Track) -> Iterator[Track]:
    """Yield tracks on which no slices overlap in part, the first with the marks."""
    lanes: list[Track] = [Track(group=track.group, name=track.name, marks=track.marks)]
    ends = [0]
    for each in sorted(track.slices, key=lambda slice_: (slice_.begin, -slice_.end, slice_.name)):
        index = next((index for index, end in enumerate(ends) if end <= each.begin), len(ends))
        if index == len(ends):
            lanes.append(Track(group=track.group, name=f"{track.name} ({index + 1})"))
            ends.append(0)
        lanes[index].slices.append(each)
        ends[index] = each.end
    yield from lanes


def _events(tracks: Sequence[Track], marks: Sequence[Mark]) -> Iterator[Mapping[str, Any]]:
    """Yield the names of tracks, then all events in the order of their times, which begin at 0."""
    starts = [each.begin for track in tracks for each in track.slices]
    starts += [each.time for track in tracks for each in track.marks] + [each.time for each in marks]
    start = min(starts, default=0)
    processes = {
        group: number for number, group in enumerate(dict.fromkeys(track.group for track in tracks), 1)
    }
    for group, process in processes.items():
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": group}}
        yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}
    events: list[Mapping[str, Any]] = []
    for thread, track in enumerate(tracks, 1):
        place = {"pid": processes[track.group], "tid": thread}
        yield {"ph": "M", **place, "name": "thread_name", "args": {"name": track.name}}
        yield {"ph": "M", **place, "name": "thread_sort_index", "args": {"sort_index": thread}}
        events += _track_events(track, place, start)
    events += [_instant(each, {"pid": 0, "tid": 0}, start, scope="g") for each in marks]
    yield from sorted(events, key=lambda event: event["ts"])


def _track_events(track: Track, place: Mapping[str, int], start: int) -> Iterable[Mapping[str, Any]]:
    for each in track.slices:
        times = {"ts": each.begin - start, "dur": each.end - each.begin}
        yield {"ph": "X", **place, **times, "name": each.name, "cat": each.category, "args": each.details}
    for mark in track.marks:
        yield _instant(mark, place, start, scope="t")


def _instant(mark: Mark, place: Mapping[str, int], start: int, *, scope: str) -> Mapping[str, Any]:
    named = {"name": mark.name, "cat": mark.category, "args": mark.details}
    return {"ph": "i", **place, "ts": mark.time - start, "s": scope, **named}
