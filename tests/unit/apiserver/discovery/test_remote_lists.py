"""Resource lists of other servers are converted to aggregated discovery as kube-aggregator converts them."""

import orjson
import pytest

from mockube.apiserver.aggregation.discovery import resources_of

NO_KIND = {"group": "", "version": "", "kind": ""}


def listed(*resources, **fields):
    return resources_of(orjson.dumps({"resources": resources, **fields}))


def test_a_subresource_without_its_resource_creates_it():
    assert listed({"name": "things/status", "namespaced": True, "kind": "Thing", "verbs": ["get"]}) == [
        {
            "resource": "things",
            "responseKind": NO_KIND,
            "scope": "Namespaced",
            "singularResource": "",
            "verbs": None,
            "subresources": [
                {"subresource": "status", "responseKind": NO_KIND | {"kind": "Thing"}, "verbs": ["get"]}
            ],
        }
    ]


def test_a_subresource_without_a_kind_has_no_group_either():
    things = {"name": "things", "kind": "Thing", "verbs": []}
    (entry,) = listed(things, {"name": "things/log", "group": "g", "version": "v1", "verbs": ["get"]})
    assert entry["subresources"] == [{"subresource": "log", "responseKind": NO_KIND, "verbs": ["get"]}]


def test_a_subresource_of_another_scope_makes_the_list_invalid():
    with pytest.raises(ValueError, match="a different scope"):
        listed({"name": "things", "namespaced": True}, {"name": "things/status"})


def test_the_same_name_may_come_twice():
    assert [one["resource"] for one in listed({"name": "a"}, {"name": "a"})] == ["a", "a"]


@pytest.mark.parametrize(
    "fields", [{"kind": "Other"}, {"apiVersion": "v2"}, {"resources": 1}, {"kind": "APIGroupList"}]
)
def test_another_object_is_no_list(fields):
    with pytest.raises(ValueError, match=r".+"):
        listed(**fields)


def test_null_is_the_same_as_nothing():
    assert listed({"name": "a", "verbs": None, "shortNames": None, "kind": None, "namespaced": None}) == [
        {"resource": "a", "responseKind": NO_KIND, "scope": "Cluster", "singularResource": "", "verbs": None}
    ]
