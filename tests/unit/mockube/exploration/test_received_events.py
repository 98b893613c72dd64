import pytest

from mockube.exploration.received_events import learn_events
from mockube.exploration.trace import Trace
from mockube.operators.end_state import NOTHING_VARIES
from tests.support.instant_clock import InstantClock

OPERATOR = "system:serviceaccount:default:operator"


def config_map(name, labels=(), **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": dict(labels), **metadata},
    }


def trace_of(changes, *watches):
    """Return a run with Changes, each a type with the object after it, and with watches: a resource with a query."""
    trace = Trace(clock=InstantClock(), operator=OPERATOR, objects={})
    for resource, query in watches or [("configmaps", "")]:
        spec = {"verb": "watch", "resource": resource, "uri": f"/api/v1/{resource}?{query}"}
        trace.add_request({"spec": spec, "status": {"code": 200}})
    for revision, (type_, tree, *resource) in enumerate(changes, start=1):
        about = {
            "apiVersion": "v1",
            "kind": tree["kind"],
            "name": tree["metadata"]["name"],
            "namespace": "default",
        }
        about["resource"] = resource[0] if resource else "configmaps"
        patch = [{"op": "replace", "path": "", "value": tree}]
        spec = {"revision": revision, "type": type_, "object": about, "author": {"user": "a"}, "patch": patch}
        trace.add_change({"spec": spec})
    return trace


def events_of(trace, other=None):
    return [str(event) for event in learn_events(trace, other or trace, NOTHING_VARIES)]


SITE = config_map("site")


def test_events_are_numbered_for_each_object_and_type():
    run = trace_of([("ADDED", SITE), ("MODIFIED", SITE), ("ADDED", config_map("b")), ("MODIFIED", SITE), ("DELETED", SITE)])  # fmt: skip
    assert events_of(run) == [
        "ADDED of configmaps site in default",
        "MODIFIED of configmaps site in default",
        "ADDED of configmaps b in default",
        "MODIFIED of configmaps site in default, number 2",
        "DELETED of configmaps site in default",
    ]


def test_events_of_one_run_only_are_left_out():
    assert events_of(trace_of([("ADDED", SITE), ("MODIFIED", SITE)]), trace_of([("ADDED", SITE)])) == [
        "ADDED of configmaps site in default"
    ]


@pytest.mark.parametrize(
    ("watch", "expected"),
    [
        pytest.param(("configmaps", "labelSelector=app%3Da"), ["ADDED", "MODIFIED", "DELETED"], id="labels"),
        pytest.param(("configmaps", "fieldSelector=metadata.name%3Dother"), [], id="name"),
        pytest.param(("configmaps", "fieldSelector=spec.unknown%3D1"), ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED"], id="field"),
        pytest.param(("secrets", ""), [], id="resource"),
    ],
)  # fmt: skip
def test_selectors_of_watches_choose_events(watch, expected):
    labelled = config_map("site", {"app": "a"})
    run = trace_of([("ADDED", SITE), *[("MODIFIED", tree) for tree in (labelled, labelled, SITE)]], watch)
    assert [text.partition(" ")[0] for text in events_of(run)] == expected


def test_random_part_of_a_name_is_a_star():
    first, second = (config_map(f"child-{text}", generateName="child-") for text in ("x2v9k", "8cbrq"))
    assert events_of(trace_of([("ADDED", first)]), trace_of([("ADDED", second)])) == [
        "ADDED of configmaps child-* in default"
    ]


def test_event_has_the_other_resources_whose_events_follow():
    changes = [("ADDED", SITE), ("ADDED", {**SITE, "kind": "Secret"}, "secrets"), ("MODIFIED", SITE)]
    run = trace_of(changes, ("configmaps", ""), ("secrets", ""))
    assert [*learn_events(run, run, NOTHING_VARIES).values()] == [["secrets"], ["configmaps"], []]
