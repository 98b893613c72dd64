"""Paths as definitions of custom resources write them."""

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
        pytest.param(".spec.missing.deeper", [], id="not there"),
        pytest.param(".spec.names[7]", [], id="beyond the end"),
        pytest.param(".spec.replicas[0]", [], id="no list"),
        pytest.param("", [TREE], id="everything"),
    ],
)
def test_a_path_finds_what_it_leads_to(path, expected):
    assert [*parse(path)(TREE)] == expected


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("spec.replicas", id="no dot before"),
        pytest.param("..replicas", id="any depth"),
        pytest.param(".a[0:2]", id="a slice"),
        pytest.param(".a['b','c']", id="a union"),
        pytest.param('.a[?(@.b=="c)]', id="an open text"),
    ],
)
def test_what_is_not_understood_is_refused(path):
    with pytest.raises(JSONPathError):
        parse(path)
