"""Decoded trees equal what Go writes after it read them; error messages are in test_faults.py."""

import orjson
import pytest

from mockube.apimachinery.quantity import QuantityError
from mockube.apimachinery.schema.model import SchemaType, Shape
from mockube.apimachinery.timestamps import TimestampError
from mockube.apiserver.schema.normal import Normaliser, WrongKind, scalar_reader

NORMALISER = Normaliser()


def normal(schemas, api_version, kind, tree, pruned=None):
    return NORMALISER.normalise(schemas.kind(api_version, kind), tree, [] if pruned is None else pruned)


def assert_written(tree, expected):
    """Assert that both are equal, including the order of members."""
    assert orjson.dumps(tree) == orjson.dumps(expected)


CONTAINER = {"name": "", "resources": {}}
"""The normal form of an empty container."""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"containers": None}, id="a list that is always written"),
        pytest.param({"containers": []}, {"containers": []}, id="empty list is not null"),
        pytest.param({"containers": [None]}, {"containers": [CONTAINER]}, id="null in a list of structs"),
        pytest.param(
            {"containers": [{"args": ["a", None]}]},
            {"containers": [{"name": "", "args": ["a", ""], "resources": {}}]},
            id="null in a list of texts",
        ),
        pytest.param(
            {"containers": None, "hostNetwork": False, "nodeName": "", "priority": None, "nodeSelector": {}},
            {"containers": None},
            id="empty values are omitted",
        ),
        pytest.param(
            {
                "containers": [],
                "priority": 0,
                "enableServiceLinks": False,
                "securityContext": {},
                "runtimeClassName": "",
            },
            {
                "containers": [],
                "securityContext": {},
                "priority": 0,
                "runtimeClassName": "",
                "enableServiceLinks": False,
            },
            id="empty values behind a pointer are kept",
        ),
        pytest.param(
            {"nodeSelector": {"b": "1", "a": None, "Z": "2"}, "containers": []},
            {"containers": [], "nodeSelector": {"Z": "2", "a": "", "b": "1"}},
            id="a map is in the order of its keys",
        ),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "0.5", "memory": None}}}]},
            {"containers": [{"name": "", "resources": {"limits": {"cpu": "500m", "memory": "0"}}}]},
            id="quantities",
        ),
        pytest.param(
            {"containers": [], "volumes": [{"hostPath": {"path": "/x"}, "name": "v"}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}], "containers": []},
            id="fields of an embedded struct",
        ),
    ],
)
def test_pod_spec_is_normalised(schemas, spec, expected):
    written = normal(schemas, "v1", "Pod", {"spec": spec})
    assert_written(written, {"metadata": {}, "spec": expected, "status": {}})


@pytest.mark.parametrize(
    ("api_version", "kind", "tree", "expected"),
    [
        pytest.param(
            "v1",
            "ConfigMap",
            {"metadata": {"name": "x"}, "data": {}, "apiVersion": "v1", "kind": "ConfigMap"},
            {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}},
            id="kind comes first",
        ),
        pytest.param(
            "v1",
            "ConfigMap",
            {"metadata": {"creationTimestamp": None, "labels": None, "annotations": {}}},
            {"metadata": {}},
            id="no creation time",
        ),
        pytest.param(
            "v1",
            "ConfigMap",
            {"metadata": {"creationTimestamp": "0001-01-01T00:00:00Z"}, "binaryData": {"a": None, "b": ""}},
            {"metadata": {}, "binaryData": {"a": "", "b": ""}},
            id="a zero time, and null for bytes",
        ),
        pytest.param(
            "apps/v1",
            "Deployment",
            {"spec": {"replicas": 0}},
            {
                "metadata": {},
                "spec": {
                    "replicas": 0,
                    "selector": None,
                    "template": {"metadata": {}, "spec": {"containers": None}},
                    "strategy": {},
                },
                "status": {},
            },
            id="structs that are always written",
        ),
        pytest.param(
            "v1",
            "Event",
            {"involvedObject": {}},
            {
                "metadata": {},
                "involvedObject": {},
                "source": {},
                "firstTimestamp": None,
                "lastTimestamp": None,
                "eventTime": None,
                "reportingComponent": "",
                "reportingInstance": "",
            },
            id="times that are always written",
        ),
        pytest.param(
            "apps/v1",
            "ControllerRevision",
            {"revision": 1, "data": {"b": None, "a": {}}},
            {"metadata": {}, "data": {"b": None, "a": {}}, "revision": 1},
            id="raw JSON is unchanged",
        ),
        pytest.param(
            "apps/v1",
            "ControllerRevision",
            {},
            {"metadata": {}, "data": None, "revision": 0},
            id="no raw JSON",
        ),
    ],
)
def test_objects_are_normalised(schemas, api_version, kind, tree, expected):
    assert_written(normal(schemas, api_version, kind, tree), expected)


def in_schema(tree):
    """Return a definition in normal form with this schema."""
    return {
        "metadata": {},
        "spec": {
            "group": "",
            "names": {"plural": "", "kind": ""},
            "scope": "",
            "versions": [
                {"name": "", "served": False, "storage": False, "schema": {"openAPIV3Schema": tree}}
            ],
        },
        "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None},
    }


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param({"items": {"x": 1, "type": "a"}}, {"items": {"type": "a"}}, id="schema or list: schema"),
        pytest.param({"items": [{"type": "a"}]}, {"items": [{"type": "a"}]}, id="schema or list: list"),
        pytest.param({"items": []}, {"items": None}, id="schema or list: empty list"),
        pytest.param({"items": 5}, {"items": None}, id="schema or list: number"),
        pytest.param(
            {"additionalProperties": {}}, {"additionalProperties": {}}, id="schema or boolean: schema"
        ),
        pytest.param(
            {"additionalProperties": False}, {"additionalProperties": False}, id="schema or boolean: boolean"
        ),
        pytest.param(
            {"dependencies": {"b": ["x"], "a": {"type": "a"}, "c": 1, "d": None}},
            {"dependencies": {"a": {"type": "a"}, "b": ["x"], "c": None, "d": None}},
            id="schema or strings",
        ),
        pytest.param({"maximum": 1.0, "minimum": 0.5}, {"maximum": 1, "minimum": 0.5}, id="numbers"),
        pytest.param({"maximum": 2.0**62}, {"maximum": 4611686018427388000}, id="large number"),
        pytest.param({"default": None, "enum": [None, 1.0]}, {"enum": [None, 1.0]}, id="JSON in a schema"),
        pytest.param(
            {"properties": {"a": {"not": {"items": {"title": ""}}}}},
            {"properties": {"a": {"not": {"items": {}}}}},
            id="schemas in schemas",
        ),
    ],
)
def test_custom_resource_schema_is_normalised(schemas, tree, expected):
    written = normal(schemas, "apiextensions.k8s.io/v1", "CustomResourceDefinition", in_schema(tree))
    assert_written(written, in_schema(expected))


def test_schema_or_boolean_of_other_type_is_refused(schemas):
    with pytest.raises(ValueError, match=r"^boolean or JSON schema expected$"):
        normal(
            schemas,
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            in_schema({"additionalProperties": "yes"}),
        )


def test_unknown_fields_are_pruned_and_reported(schemas):
    pruned = []
    tree = {"Data": {}, "metadata": {"name": "x", "selfLink2": ""}, "data": {"a": "b"}}
    written = normal(schemas, "v1", "ConfigMap", tree, pruned)
    assert_written(written, {"metadata": {"name": "x"}, "data": {"a": "b"}})
    assert pruned == ["Data", "selfLink2"]


def test_raw_json_is_not_pruned(schemas):
    pruned = []
    normal(schemas, "apps/v1", "ControllerRevision", {"data": {"anything": 1}}, pruned)
    assert pruned == []


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param([], id="a list for an object"),
        pytest.param({"metadata": "x"}, id="a text for a struct"),
        pytest.param({"data": []}, id="a list for a map"),
        pytest.param({"data": {"a": 1}}, id="a number for a text"),
        pytest.param({"metadata": {"finalizers": {}}}, id="an object for a list"),
        pytest.param({"immutable": "true"}, id="a text for a boolean"),
    ],
)
def test_wrong_json_type_is_refused(schemas, tree):
    with pytest.raises(WrongKind):
        normal(schemas, "v1", "ConfigMap", tree)


def test_normalising_does_not_modify_tree(schemas):
    tree = {"spec": {"nodeSelector": {"b": "1", "a": None}, "containers": [{"x": 1}], "hostNetwork": False}}
    before = orjson.dumps(tree)
    normal(schemas, "v1", "Pod", tree)
    assert orjson.dumps(tree) == before


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        pytest.param({}, ("metadata",), id="missing struct"),
        pytest.param({"spec": None}, ("spec",), id="null for a struct"),
        pytest.param({}, ("spec", "template", "metadata"), id="missing struct in a missing struct"),
        pytest.param(
            {"spec": {"template": {"spec": {"containers": [None]}}}},
            ("spec", "template", "spec", "containers", 0),
            id="null in a list",
        ),
    ],
)
def test_normalised_tree_can_be_modified_by_caller(schemas, tree, path):
    first, second = (normal(schemas, "apps/v1", "Deployment", tree) for _ in range(2))
    for step in path:
        first, second = first[step], second[step]
    assert first == second
    assert first is not second


def condition(name):
    return {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": None}


BEFORE = {
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "resources": {}}], "nodeName": "n"},
    "status": {"conditions": [condition("Ready"), condition("Mine")]},
}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="unchanged"),
        pytest.param(
            {"metadata": {**BEFORE["metadata"], "uid": "1", "x": 1}}, id="changed and unknown members"
        ),
        pytest.param(
            {"spec": {**BEFORE["spec"], "nodeName": "", "hostname": "h"}}, id="members out of order"
        ),
        pytest.param(
            {"status": {"conditions": [BEFORE["status"]["conditions"][1], {"status": "x", "type": "New"}]}},
            id="elements of a list",
        ),
        pytest.param({"status": {"conditions": [None]}}, id="null in a list"),
        pytest.param({"spec": BEFORE["status"]}, id="value of another field's type"),
    ],
)
def test_normalising_with_previous_object_gives_same_result(schemas, changed):
    after = {**BEFORE, **changed}
    unknown_alone, unknown = [], []
    alone = normal(schemas, "v1", "Pod", after, unknown_alone)
    beside = NORMALISER.normalise(schemas.kind("v1", "Pod"), after, unknown, BEFORE)
    assert_written(beside, alone)
    assert unknown == unknown_alone
    assert all(beside[name] is BEFORE[name] for name in BEFORE if name not in changed)


def read(shape, value, go=""):
    return scalar_reader(SchemaType(shape=shape, go=go))(value)


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [
        pytest.param(Shape.STRING, "x", "x", id="a text"),
        pytest.param(Shape.BOOLEAN, False, False, id="a boolean"),
        pytest.param(Shape.NUMBER, 0.5, 0.5, id="a fraction"),
        pytest.param(Shape.NUMBER, 2.0, 2, id="a float without a fraction"),
        pytest.param(Shape.NUMBER, 3, 3, id="an integer as a number"),
        pytest.param(Shape.NUMBER, 1e300, 1e300, id="float beyond integers"),
        pytest.param(Shape.QUANTITY, "0.5", "500m", id="a quantity"),
        pytest.param(Shape.QUANTITY, " 1Gi ", "1Gi", id="a quantity in spaces"),
        pytest.param(Shape.QUANTITY, 0.5, "500m", id="a quantity without quotes"),
        pytest.param(Shape.QUANTITY, 1024, "1024", id="a whole quantity without quotes"),
        pytest.param(Shape.INT_OR_STRING, 80, 80, id="int-or-string: integer"),
        pytest.param(Shape.INT_OR_STRING, "25%", "25%", id="int-or-string: string"),
        pytest.param(Shape.TIME, "2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z", id="a time"),
        pytest.param(
            Shape.TIME, "2024-05-06T07:08:09.9+02:00", "2024-05-06T05:08:09Z", id="time in another zone"
        ),
        pytest.param(Shape.TIME, "0001-01-01T00:00:00Z", None, id="no time"),
        pytest.param(
            Shape.MICRO_TIME, "2024-05-06T07:08:09.120000Z", "2024-05-06T07:08:09.120000Z", id="microseconds"
        ),
        pytest.param(Shape.MICRO_TIME, "0001-01-01T00:00:00.000000Z", None, id="no microseconds"),
        pytest.param(Shape.BYTES, "YQ==", "YQ==", id="bytes"),
        pytest.param(Shape.BYTES, [97, None], "YQA=", id="bytes as numbers"),
        pytest.param(Shape.ANY, {"b": None, "a": []}, {"b": None, "a": []}, id="anything"),
    ],
)
def test_scalars_are_written_as_go_does(shape, value, expected):
    written = read(shape, value)
    assert (written, type(written)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("go", "minimum", "maximum"),
    [("int32", -(2**31), 2**31 - 1), ("int64", -(2**63), 2**63 - 1), ("uint8", 0, 255)],
)
def test_integer_out_of_range_is_refused(go, minimum, maximum):
    for value in (minimum, maximum):
        assert read(Shape.INTEGER, value, go) == value
    for value in (minimum - 1, maximum + 1):
        with pytest.raises(WrongKind):
            read(Shape.INTEGER, value, go)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        pytest.param(Shape.STRING, 1, id="a number for a text"),
        pytest.param(Shape.BOOLEAN, 0, id="a number for a boolean"),
        pytest.param(Shape.INTEGER, True, id="a boolean for an integer"),
        pytest.param(Shape.INTEGER, 1.0, id="a float for an integer"),
        pytest.param(Shape.INTEGER, "1", id="a text for an integer"),
        pytest.param(Shape.NUMBER, "1", id="a text for a number"),
        pytest.param(Shape.NUMBER, True, id="a boolean for a number"),
        pytest.param(Shape.INT_OR_STRING, False, id="a boolean for int-or-string"),
        pytest.param(Shape.INT_OR_STRING, 2**31, id="too large an integer for int-or-string"),
        pytest.param(Shape.TIME, 0, id="a number for a time"),
        pytest.param(Shape.MICRO_TIME, {}, id="an object for a time"),
        pytest.param(Shape.BYTES, 1, id="a number for bytes"),
        pytest.param(Shape.BYTES, [256], id="a number that is no byte"),
    ],
)
def test_scalar_of_wrong_json_type_is_refused(shape, value):
    with pytest.raises(WrongKind):
        read(shape, value, "int64")


@pytest.mark.parametrize(
    ("shape", "value", "error"),
    [
        pytest.param(Shape.QUANTITY, "much", QuantityError, id="a text that is no quantity"),
        pytest.param(Shape.QUANTITY, [], QuantityError, id="a list that is no quantity"),
        pytest.param(Shape.TIME, "today", TimestampError, id="no time"),
        pytest.param(Shape.MICRO_TIME, "2024-05-06T07:08:09Z", TimestampError, id="no microseconds"),
        pytest.param(Shape.BYTES, "?", ValueError, id="no base64"),
    ],
)
def test_scalar_text_refused_by_its_reader_is_refused(shape, value, error):
    with pytest.raises(error):
        read(shape, value)
