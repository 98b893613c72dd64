"""Conversion of Events between the field names of both groups."""

import pytest

from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds.events.event import to_core, to_events
from mockube.apiserver.schema.decode import Decoder

CORE = {
    "kind": "Event",
    "apiVersion": "v1",
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "reason": "R",
    "message": "hello",
    "source": {"component": "c"},
    "firstTimestamp": None,
    "lastTimestamp": "2030-01-01T00:00:00Z",
    "count": 3,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
EVENTS = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "e"},
    "eventTime": None,
    "reason": "R",
    "regarding": {"kind": "Pod", "name": "p"},
    "note": "hello",
    "type": "Normal",
    "deprecatedSource": {"component": "c"},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": "2030-01-01T00:00:00Z",
    "deprecatedCount": 3,
}


def test_event_converts_between_both_groups():
    assert to_events(CORE) == EVENTS
    assert to_core(EVENTS) == CORE


def test_reporting_component_and_instance_are_converted():
    reported = CORE | {"reportingComponent": "example.com/c", "reportingInstance": "i"}
    there = to_events(reported)
    assert (there["reportingController"], there["reportingInstance"]) == ("example.com/c", "i")
    assert to_core(there) == reported


@pytest.mark.parametrize("tree", [pytest.param(CORE, id="core"), pytest.param(EVENTS, id="events.k8s.io")])
def test_converted_event_has_form_of_its_version(tree):
    converted = to_events(tree) if tree is CORE else to_core(tree)
    schema = builtin.load().kind(converted["apiVersion"], "Event")
    bare = {name: value for name, value in converted.items() if name not in ("kind", "apiVersion")}
    decoded = Decoder().decode(schema, converted).tree
    assert {name: value for name, value in decoded.items() if name in bare} == bare
    assert decoded.keys() - {"kind", "apiVersion"} == bare.keys()
