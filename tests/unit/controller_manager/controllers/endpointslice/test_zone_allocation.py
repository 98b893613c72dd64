"""The allocation of endpoints to zones: the present hints that stay, and the zones that give endpoints to others."""

from collections import Counter

import pytest

from mockube.controller_manager.controllers.endpointslice import hints
from mockube.controller_manager.controllers.endpointslice.hints import _Allocation
from mockube.controller_manager.workloads.endpoint_slices import SliceChanges


def endpoint(zone="", hint="", *, ready=True, node=""):
    hinted = {"hints": {"forZones": [{"name": hint}]}} if hint else {}
    fields = {name: value for name, value in (("zone", zone), ("nodeName", node)) if value}
    return {"conditions": {"ready": ready}, **fields, **hinted}


def slice_of(*endpoints, name="s"):
    return {"metadata": {"name": name}, "endpoints": [*endpoints]}


@pytest.mark.parametrize(
    ("endpoints", "counts"),
    [
        ([endpoint(hint="a")], {"a": 1}),
        ([endpoint(hint="a"), endpoint(hint="b")], {"a": 1, "b": 1}),
        ([endpoint(hint="a"), endpoint(ready=False)], {"a": 1}),
        ([], {}),
        ([endpoint(hint="a"), endpoint()], None),
        ([endpoint(hint="gone")], None),
        ([endpoint(hint="a"), endpoint(hint="a")], None),
    ],
)
def test_hints_stay_while_they_are_complete_and_overload_no_zone(endpoints, counts):
    allocations = {"a": _Allocation(1, 1.0), "b": _Allocation(1, 1.0)}
    present = slice_of(*endpoints)
    assert hints._present_hints([present], allocations) == (
        counts or {},
        [] if counts is not None else [present],
    )


def test_slices_share_the_maximum_of_a_zone():
    first, second = slice_of(endpoint(hint="a")), slice_of(endpoint(hint="a"))
    assert hints._present_hints([first, second], {"a": _Allocation(1, 1.0)}) == ({"a": 1}, [second])


@pytest.mark.parametrize(
    ("desired", "counts", "giving", "receiving"),
    [
        ({"a": 2, "b": 2}, {"a": 2, "b": 2}, {}, {}),
        ({"a": 2, "b": 2}, {"a": 3, "b": 1}, {"a": 1}, {"b": 1}),
        ({"a": 2, "b": 2}, {"a": 4}, {"a": 2}, {"b": 2}),
        ({"a": 1, "b": 1, "c": 2}, {"a": 4}, {"a": 3}, {"b": 1, "c": 2}),
        ({"a": 1.6, "b": 2.4}, {"a": 2, "b": 2}, {}, {}),
        ({"a": 1.4, "b": 2.6}, {"a": 2, "b": 2}, {}, {}),
        ({"a": 1.5, "b": 3.5}, {"a": 2, "b": 2}, {"a": 1}, {"b": 1}),
        ({"a": 1.6, "b": 3.5}, {"a": 2, "b": 2}, {}, {}),
        ({"a": 2}, {"a": 3}, {}, {}),
    ],
)
def test_zone_with_too_many_endpoints_gives_some_to_one_with_too_few(desired, counts, giving, receiving):
    allocations = {zone: _Allocation(9, number) for zone, number in desired.items()}
    found = hints._giving_and_receiving_zones(allocations, Counter(counts))
    assert found == (giving, receiving)


@pytest.mark.parametrize(
    ("zones", "giving", "receiving", "expected"),
    [
        ("aab", {}, {}, "aab"),
        ("aab", {"a": 1}, {"b": 1}, "bab"),
        ("aab", {"a": 2}, {"b": 1, "c": 1}, "bcb"),
        ("aab", {"a": 2}, {"b": 1}, "bab"),
        ("aab", {"b": 1}, {"c": 1}, "aac"),
    ],
)
def test_given_endpoints_get_the_zone_that_receives_them(zones, giving, receiving, expected):
    assert "".join(hints._redistribute(zones, Counter(giving), Counter(receiving))) == expected


@pytest.mark.parametrize(
    ("subject", "with_node", "expected"),
    [
        (endpoint("a", node="n"), False, {"forZones": [{"name": "a"}]}),
        (endpoint("a", node="n"), True, {"forZones": [{"name": "a"}], "forNodes": [{"name": "n"}]}),
        (endpoint("a"), True, {"forZones": [{"name": "a"}]}),
        (endpoint(node="n"), True, {"forNodes": [{"name": "n"}]}),
        (endpoint(hint="b"), True, None),
        (endpoint("a", ready=False), True, None),
    ],
)
def test_hint_of_an_endpoint_is_its_own_zone(subject, with_node, expected):
    assert hints._with_own_zone(subject, with_node=with_node).get("hints") == expected


RATIOS = {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("zones", "ratios", "expected"),
    [
        ("", RATIOS, False),
        ("", None, False),
        ("a", None, True),
        ("ab", RATIOS, False),
        ("aaab", RATIOS, True),
        ("aab", RATIOS, True),
    ],
)
def test_zone_is_overloaded_with_too_few_endpoints(zones, ratios, expected):
    assert hints.is_overloaded([slice_of(*(endpoint(hint=zone) for zone in zones))], ratios) is expected


@pytest.mark.parametrize(
    ("endpoints", "ratios", "zones", "problem"),
    [
        ([endpoint("a"), endpoint("b")], RATIOS, "ab", ""),
        ([endpoint("a"), endpoint("a")], RATIOS, "ba", ""),
        ([endpoint("a"), endpoint(ready=False), endpoint("b")], RATIOS, "ab", ""),
        ([endpoint("a"), endpoint()], RATIOS, None, "One or more endpoints do not have a zone specified"),
        (
            [endpoint("a"), endpoint(ready=False)],
            RATIOS,
            None,
            "Insufficient number of endpoints (1 endpoints, 2 zones)",
        ),
        ([], {}, None, "No hints allocated for zones"),
        ([endpoint("a")], None, None, hints._NO_NODE_INFO),
    ],
)
def test_ready_endpoints_are_allocated(endpoints, ratios, zones, problem):
    changes, found = hints._allocate_to_zones(SliceChanges(create=[slice_of(*endpoints)]), [], ratios)
    assert found == problem
    if changes is None:
        assert zones is None
        return
    hinted = [
        each["hints"]["forZones"][0]["name"] for each in changes.create[0]["endpoints"] if "hints" in each
    ]
    assert "".join(hinted) == zones


def test_slice_with_outdated_hints_is_updated():
    present = slice_of(endpoint("a", "gone"), endpoint("b", "gone"))
    changes, _ = hints._allocate_to_zones(SliceChanges(), [present], RATIOS)
    assert [hints._zones_of(each["endpoints"]) for each in changes.update] == [{"a": 1, "b": 1}]
