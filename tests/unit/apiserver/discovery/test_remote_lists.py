"""Resource lists of other servers are converted to aggregated discovery as kube-aggregator converts them."""

import orjson
import pytest

from mockube.apiserver.aggregation.discovery import resources_of

NO_KIND = {"group": "", "version": "", "kind": ""}


def parse_resources(*resources, **fields):
    return resources_of(orjson.dumps({"resources": resources, **fields}))


def test_subresource_without_resource_adds_resource():
    assert parse_resources(
        {"name": "things/status", "namespaced": True, "kind": "Thing", "verbs": ["get"]}
    ) == [
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


def test_subresource_without_kind_has_empty_response_kind():
    things = {"name": "things", "kind": "Thing", "verbs": []}
    (entry,) = parse_resources(
        things, {"name": "things/log", "group": "g", "version": "v1", "verbs": ["get"]}
    )
    assert entry["subresources"] == [{"subresource": "log", "responseKind": NO_KIND, "verbs": ["get"]}]


def test_subresource_with_other_scope_is_refused():
    with pytest.raises(ValueError, match="a different scope"):
        parse_resources({"name": "things", "namespaced": True}, {"name": "things/status"})


def test_duplicate_resource_names_are_kept():
    assert [one["resource"] for one in parse_resources({"name": "a"}, {"name": "a"})] == ["a", "a"]


@pytest.mark.parametrize(
    "fields", [{"kind": "Other"}, {"apiVersion": "v2"}, {"resources": 1}, {"kind": "APIGroupList"}]
)
def test_another_object_is_no_list(fields):
    with pytest.raises(ValueError, match=r".+"):
        parse_resources(**fields)


def test_null_is_the_same_as_nothing():
    assert parse_resources(
        {"name": "a", "verbs": None, "shortNames": None, "kind": None, "namespaced": None}
    ) == [
        {"resource": "a", "responseKind": NO_KIND, "scope": "Cluster", "singularResource": "", "verbs": None}
    ]
