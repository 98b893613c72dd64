"""Objects, lists and watches as a real server encoded them in protobuf, compared with their JSON.

A line has one object in both encodings, read at nearly the same time: if
the server changed it in between, its resourceVersions differ, and its status may differ as well.
"""

import base64

import orjson
import pytest

from mockube.apiserver.wire.protobuf.envelope import decode, encode, watch_frame
from tests.support.recorded import recordings
from tests.support.server.watch_frames import watch_events

AS_THE_CLIENT_WROTE_IT = {"ControllerRevision"}
"""Kinds that contain a client's JSON text with its spaces: decoded correctly, but not encoded to the same bytes."""


@pytest.fixture(
    params=[case for case in recordings.cases("protobuf.jsonl") if "/CSINode-" not in str(case.id)]
)
def recording(request):
    return request.param


def read(recording):
    """Return the bytes, and the trees decoded from them and from the JSON."""
    data = base64.b64decode(recording["protobuf"])
    if recording["id"].startswith("watch/"):
        return (
            data,
            [{"type": event, "object": tree} for event, tree in watch_events(data)],
            recording["json"],
        )
    return data, [decode(data)], [recording["json"]]


def test_definition_of_new_part_is_written_with_recorded_ones():
    """Objects of 1.36 have the parts that 1.37 added as empty messages."""
    tree = {"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "metadata": {}, "spec": {"drivers": []}}
    assert decode(encode(tree))["status"] == {}


def write(recording, trees):
    if recording["id"].startswith("watch/"):
        return b"".join(watch_frame(event["type"], encode(event["object"])) for event in trees)
    return encode(*trees)


def without_status_and_version(tree):
    metadata = {name: value for name, value in tree["metadata"].items() if name != "resourceVersion"}
    return {name: value for name, value in tree.items() if name != "status"} | {"metadata": metadata}


def test_protobuf_decodes_to_recorded_json(recording):
    _, shown, expected = read(recording)
    for tree, other in zip(shown, expected, strict=True):
        if tree.get("metadata", {}).get("resourceVersion") == other.get("metadata", {}).get(
            "resourceVersion"
        ):
            assert orjson.dumps(tree) == orjson.dumps(other)
        else:
            assert without_status_and_version(tree) == without_status_and_version(other)


def test_protobuf_round_trip_keeps_json(recording):
    *_, expected = read(recording)
    written = base64.b64encode(write(recording, expected)).decode()
    assert read(recording | {"protobuf": written})[1] == expected


def test_json_encodes_to_recorded_protobuf(recording):
    data, shown, _ = read(recording)
    if shown[0].get("kind") not in AS_THE_CLIENT_WROTE_IT:
        assert write(recording, shown) == data
