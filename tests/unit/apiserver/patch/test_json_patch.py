import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.patch.errors import PatchNotApplicable, TooManyOperations, UndecodablePatch
from mockube.apiserver.patch import json_patch


def add(path, value):
    return {"op": "add", "path": path, "value": value}


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        pytest.param({"a": 1}, [], {"a": 1}, id="no operations"),
        pytest.param({"a": 1}, None, {"a": 1}, id="null is no operations"),
        pytest.param({}, [add("/a", 1)], {"a": 1}, id="add a member"),
        pytest.param({"a": 1}, [add("/a", 2)], {"a": 2}, id="add over a member"),
        pytest.param({}, [{"op": "add", "path": "/a"}], {"a": None}, id="add without a value adds null"),
        pytest.param({}, [add("a/b", 1)], {"b": 1}, id="text before the first slash is ignored"),
        pytest.param({}, [add("/a~1b~0c", 1)], {"a/b~c": 1}, id="escaped steps"),
        pytest.param({"a": [1, 3]}, [add("/a/1", 2)], {"a": [1, 2, 3]}, id="add into a list"),
        pytest.param({"a": [1]}, [add("/a/-", 2)], {"a": [1, 2]}, id="add to the end of a list"),
        pytest.param({"a": [1, 2]}, [add("/a/-1", 3)], {"a": [1, 2, 3]}, id="add from the end"),
        pytest.param({"a": [1, 2]}, [add("/a/+1", 3)], {"a": [1, 3, 2]}, id="an index with a sign"),
        pytest.param({"a": [{"b": 1}]}, [add("/a/0/c", 2)], {"a": [{"b": 1, "c": 2}]}, id="through a list"),
        pytest.param({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}, id="remove a member"),
        pytest.param({"a": [1, 2]}, [{"op": "remove", "path": "/a/-2"}], {"a": [2]}, id="remove from a list"),
        pytest.param({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}, id="replace"),
        pytest.param(
            {}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}, id="replace an absent member"
        ),
        pytest.param(
            {"a": [1]}, [{"op": "replace", "path": "/a/0", "value": 2}], {"a": [2]}, id="replace in a list"
        ),
        pytest.param(
            {"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}, id="replace all"
        ),
        pytest.param(
            {"a": 1}, [{"op": "replace", "path": "", "value": [1]}], [1], id="replace all by a list"
        ),
        pytest.param({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}, id="move"),
        pytest.param(
            {"a": [1, 2]}, [{"op": "move", "from": "/a/0", "path": "/a/1"}], {"a": [2, 1]}, id="reorder"
        ),
        pytest.param({"a": 1}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": 1, "b": 1}, id="copy"),
        pytest.param(
            {}, [{"op": "copy", "from": "/a", "path": "/b"}], {"b": None}, id="copy an absent member"
        ),
        pytest.param(
            {"a": {"b": 1}},
            [{"op": "copy", "from": "/a", "path": "/c"}, add("/c/d", 2)],
            {"a": {"b": 1}, "c": {"b": 1, "d": 2}},
            id="a copy is changed without the original",
        ),
        pytest.param({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}, id="test"),
        pytest.param({"a": 1}, [{"op": "test", "path": "", "value": {"a": 1}}], {"a": 1}, id="test all"),
        pytest.param({}, [{"op": "test", "path": "/a", "value": None}], {}, id="test for absence"),
        pytest.param({}, [{"op": "test", "path": "/a"}], {}, id="test for absence, without a value"),
    ],
)
def test_json_patch_is_applied(document, operations, expected):
    before = orjson.dumps(document)
    assert json_patch.apply(document, operations) == expected
    assert orjson.dumps(document) == before


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({}, "Unexpected kind: unknown"),
        ({"op": 5}, "Unexpected kind: unknown"),
        ({"op": "zap"}, "Unexpected kind: zap"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        ({"op": "remove", "path": 5}, "remove operation failed to decode path: missing value"),
        ({"op": "copy", "from": "/a"}, "copy operation failed to decode path: missing value"),
        (
            {"op": "replace"},
            "replace operation failed to decode path: operation missing path field: missing value",
        ),
        (
            {"op": "test", "path": []},
            "test operation failed to decode path: json: cannot unmarshal array into Go value of type string",
        ),
        (
            {"op": "move", "path": "/b"},
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            {"op": "copy", "path": "/b", "from": True},
            "copy operation failed to decode from: json: cannot unmarshal bool into Go value of type string",
        ),
        (add("", 1), 'add operation does not apply: doc is missing path: "": missing value'),
        (add("/no/b", 1), 'add operation does not apply: doc is missing path: "/no/b": missing value'),
        (add("/text/b", 1), 'add operation does not apply: doc is missing path: "/text/b": missing value'),
        (add("/null/b", 1), 'add operation does not apply: doc is missing path: "/null/b": missing value'),
        (
            add("/list/9/b", 1),
            'add operation does not apply: doc is missing path: "/list/9/b": missing value',
        ),
        (
            add("/list/x", 1),
            (
                "error in add for path: '/list/x': value was not a proper array index: 'x': "
                'strconv.Atoi: parsing "x": invalid syntax'
            ),
        ),
        (
            add("/list/4", 1),
            "error in add for path: '/list/4': Unable to access invalid index: 4: invalid index referenced",
        ),
        (
            add("/list/-5", 1),
            "error in add for path: '/list/-5': Unable to access invalid index: -5: invalid index referenced",
        ),
        (
            {"op": "remove", "path": "/a/b"},
            'remove operation does not apply: doc is missing path: "/a/b": missing value',
        ),
        (
            {"op": "remove", "path": "/no"},
            "error in remove for path: '/no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            {"op": "remove", "path": "/list/x"},
            "error in remove for path: '/list/x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            {"op": "remove", "path": "/list/3"},
            "error in remove for path: '/list/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            {"op": "replace", "path": "/no/b", "value": 1},
            "replace operation does not apply: doc is missing path: /no/b: missing value",
        ),
        (
            {"op": "replace", "path": "/list/3", "value": 1},
            "replace operation does not apply: doc is missing key: /list/3: missing value",
        ),
        (
            {"op": "replace", "path": "", "value": 1},
            "replace operation value must be object or array: %!w(<nil>)",
        ),
        (
            {"op": "move", "from": "/no/b", "path": "/b"},
            "move operation does not apply: doc is missing from path: /no/b: missing value",
        ),
        (
            {"op": "move", "from": "/no", "path": "/b"},
            "error in move for path: 'no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            {"op": "move", "from": "/text", "path": "/no/b"},
            "move operation does not apply: doc is missing destination path: /no/b: missing value",
        ),
        (
            {"op": "move", "from": "/text", "path": "/list/9"},
            "error in move for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "copy", "from": "/no/b", "path": "/b"},
            "copy operation does not apply: doc is missing from path: /no/b: missing value",
        ),
        (
            {"op": "copy", "from": "/list/9", "path": "/b"},
            "error in copy for from: '/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "copy", "from": "/text", "path": "/no/b"},
            "copy operation does not apply: doc is missing destination path: /no/b: missing value",
        ),
        (
            {"op": "copy", "from": "/text", "path": "/list/9"},
            "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "test", "path": "/no/b"},
            "test operation does not apply: is missing path: /no/b: missing value",
        ),
        (
            {"op": "test", "path": "/list/9"},
            "error in test for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        ({"op": "test", "path": "/text", "value": "y"}, "testing value /text failed: test failed"),
        ({"op": "test", "path": "/list/0", "value": 1.0}, "testing value /list/0 failed: test failed"),
        ({"op": "test", "path": "/list/0", "value": True}, "testing value /list/0 failed: test failed"),
        ({"op": "test", "path": "", "value": {}}, "testing value  failed: test failed"),
    ],
)
def test_json_patch_operation_that_fails_is_refused(operation, message):
    document = {"text": "x", "null": None, "list": [1, 2, 3]}
    with pytest.raises(PatchNotApplicable) as refused:
        json_patch.apply(document, [operation])
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"a": 1}, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ([1], "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
    ],
)
def test_malformed_json_patch_is_refused(patch, message):
    with pytest.raises(UndecodablePatch) as refused:
        json_patch.apply({}, patch)
    assert str(refused.value) == message


def test_null_operation_has_no_kind():
    with pytest.raises(PatchNotApplicable, match="Unexpected kind: unknown"):
        json_patch.apply({}, [None])


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"a": 1}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (["x"], "json: cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5}], "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        (
            [{"path": {}}],
            "json: cannot unmarshal object into Go struct field jsonPatchOp.path of type string",
        ),
        (
            [{"from": True}],
            "json: cannot unmarshal bool into Go struct field jsonPatchOp.from of type string",
        ),
    ],
)
def test_check_refuses_malformed_operations(patch, message):
    with pytest.raises(UndecodablePatch) as refused:
        json_patch.check(patch)
    assert str(refused.value) == f"error decoding patch: {message}"


@pytest.mark.parametrize(
    ("patch", "complaints"),
    [
        (None, []),
        ([None, {"op": None}], []),
        ([{"op": "add", "path": "/a", "from": "", "value": {"bogus": 1}}], []),
        (
            [{"op": "add", "b": 1, "a": 1}, {"Op": "x"}],
            [
                'json patch unknown field "[0].b"',
                'json patch unknown field "[0].a"',
                'json patch unknown field "[1].Op"',
            ],
        ),
    ],
)
def test_check_reports_unknown_members(patch, complaints):
    assert json_patch.check(patch) == complaints


@pytest.mark.thorough
def test_number_of_operations_is_limited():
    operation = {"op": "test", "path": "", "value": {}}
    assert json_patch.apply({}, [operation] * 10_000) == {}
    with pytest.raises(TooManyOperations) as refused:
        json_patch.apply({}, [operation] * 10_001)
    assert str(refused.value) == "The allowed maximum operations in a JSON patch is 10000, got 10001"


def test_growth_by_copy_operations_is_limited():
    document = {"a": "x" * 1_000_000}
    copies = [{"op": "copy", "from": "/a", "path": f"/b{number}"} for number in range(4)]
    assert len(json_patch.apply(document, copies[:3])) == 4
    with pytest.raises(PatchNotApplicable) as refused:
        json_patch.apply(document, copies)
    assert str(refused.value) == (
        "Unable to complete the copy, the accumulated size increase of copy is 4000008, exceeding the limit 3145728"
    )


def test_depth_of_patched_document_is_limited():
    deeper = [add("/a" * depth, {}) for depth in range(1, 301)]
    with pytest.raises(PatchNotApplicable, match="exceeded max depth"):
        json_patch.apply({}, deeper)


def test_json_patch_sorts_only_containers_on_its_path():
    document = {"b": {"z": 1, "a": 2}, "a": {"z": 1, "a": 2}}
    patched = json_patch.apply(document, [add("/a/b", {"y": 1, "x": 2})])
    assert orjson.dumps(patched) == b'{"a":{"a":2,"b":{"y":1,"x":2},"z":1},"b":{"z":1,"a":2}}'


def test_test_operation_sorts_tested_value():
    document = {"b": {"z": {"d": 1, "c": 2}, "a": 2}, "a": {"z": 1, "a": 2}}
    patched = json_patch.apply(document, [{"op": "test", "path": "/b", "value": document["b"]}])
    assert orjson.dumps(patched) == b'{"a":{"z":1,"a":2},"b":{"a":2,"z":{"c":2,"d":1}}}'
    assert list(document) == ["b", "a"]


def test_copied_value_keeps_order_of_source():
    document = {"b": {"z": 1, "a": {}}, "a": {"z": 1, "a": 2}}
    patched = json_patch.apply(document, [{"op": "copy", "from": "/b", "path": "/b/a/x"}])
    assert orjson.dumps(patched["b"]["a"]["x"]) == b'{"a":{},"z":1}'
    patched = json_patch.apply(document, [{"op": "copy", "from": "/b", "path": "/c"}])
    assert orjson.dumps(patched["c"]) == b'{"z":1,"a":{}}'


def test_untouched_parts_are_shared_with_document():
    document = {"a": {"b": 1}, "c": [1]}
    patched = json_patch.apply(document, [add("/c/-", 2)])
    assert patched["a"] is document["a"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)
PATHS = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "-1"]), min_size=1, max_size=3).map(
    lambda steps: "/" + "/".join(steps)
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": PATHS},
    optional={"from": PATHS, "value": JSON},
)


@given(document=DOCUMENTS, operations=st.lists(OPERATIONS, max_size=5))
def test_original_document_is_not_modified(document, operations):
    before = orjson.dumps(document)
    try:
        once = json_patch.apply(document, operations)
        assert json_patch.apply(document, operations) == once
    except PatchNotApplicable:
        pass
    assert orjson.dumps(document) == before


@given(document=DOCUMENTS, value=JSON)
def test_added_value_can_be_tested_and_removed(document, value):
    location = "/new/-"
    patch = [add("/new", []), add(location, value), {"op": "test", "path": "/new", "value": [value]}]
    assert json_patch.apply(document, [*patch, {"op": "remove", "path": "/new"}]) == document
