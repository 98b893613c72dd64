"""JSON paths in the definitions of custom resources."""

import pytest

from mockube.apimachinery.jsonpath import JSONPathError, parse

TREE = {
    "spec": {"replicas": 3, "names": ["a", "b", "c"], "a.b": {"c": 1}},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "count": 3},
            {"type": "Progressing", "status": "False", "count": 1},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".spec.replicas", [3], id="fields"),
        pytest.param("['spec']['replicas']", [3], id="quoted fields"),
        pytest.param("..count", [3, 1], id="any depth"),
        pytest.param(".spec.names[0:2]", ["a", "b"], id="a slice"),
        pytest.param(".spec.names[::2]", ["a", "c"], id="every second"),
        pytest.param(".spec['replicas','names'][0]", [], id="a number has no elements"),
        pytest.param(".spec.names[2,0]", ["c", "a"], id="a union"),
        pytest.param(".status.conditions[?(@.type)].count", [3, 1], id="those that have a field"),
        pytest.param(r".spec.a\.b.c", [1], id="a dot in a name"),
        pytest.param(".spec.names[0]", ["a"], id="the first"),
        pytest.param(".spec.names[-1]", ["c"], id="the last"),
        pytest.param(".spec.names[*]", ["a", "b", "c"], id="all"),
        pytest.param(".status.conditions[*].type", ["Ready", "Progressing"], id="a field of all"),
        pytest.param('.status.conditions[?(@.type=="Ready")].status', ["True"], id="those that match"),
        pytest.param(".status.conditions[?(@.type=='Ready')].status", ["True"], id="in single quotes"),
        pytest.param(".status.conditions[?(@.count > 2)].type", ["Ready"], id="those that are greater"),
        pytest.param('.status.conditions[?(@.missing=="x")].type', [], id="none matches"),
        pytest.param('.status.conditions[?(@.count=="3")].type', [], id="a number is no text"),
        pytest.param(".spec.missing.deeper", [], id="missing field"),
        pytest.param(".spec.names[7]", [], id="beyond the end"),
        pytest.param(".spec.replicas[0]", [], id="no list"),
        pytest.param("", [TREE], id="everything"),
    ],
)
def test_json_path_finds_values(path, expected):
    assert [*parse(path)(TREE)] == expected


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(".a[x]", id="no index"),
        pytest.param(".a[0", id="an open bracket"),
        pytest.param("....a", id="two recursive descents"),
        pytest.param('.a[?(@.b=="c)]', id="an open text"),
        pytest.param(".a[0]+1.2.3", id="no number"),
        pytest.param(".a,b", id="a comma"),
    ],
)
def test_invalid_json_path_is_refused(path):
    with pytest.raises(JSONPathError):
        parse(path)


@pytest.mark.thorough
def test_json_path_with_too_many_results_finds_nothing():
    tree = {"a": {"a": {"a": {}}}}
    for _ in range(150):
        tree = {"a": tree, "b": [1]}
    assert parse("..a..a..a..b")(tree) == ()
