"""Conditions and predicates of a wait, and the parsing of manifests."""

import pytest

from mockube.cluster_client import objects, satisfies

AVAILABLE = {"type": "Available", "status": "True"}
NOT_YET = {"type": "Available", "status": "False"}


@pytest.mark.parametrize(
    ("generation", "status", "met"),
    [
        pytest.param(1, {"conditions": [AVAILABLE]}, True, id="condition is true"),
        pytest.param(1, {"conditions": [NOT_YET]}, False, id="condition is false"),
        pytest.param(1, {}, False, id="no conditions"),
        pytest.param(
            2,
            {"conditions": [AVAILABLE], "observedGeneration": 2},
            True,
            id="true for the current generation",
        ),
        pytest.param(
            2, {"conditions": [AVAILABLE], "observedGeneration": 1}, False, id="true for an older generation"
        ),
    ],
)
def test_condition_must_be_of_current_generation(generation, status, met):
    assert satisfies({"metadata": {"generation": generation}, "status": status}, "Available") is met


@pytest.mark.parametrize("answer", [True, False])
def test_predicate_is_evaluated_on_object(answer):
    assert satisfies({"data": {"ready": answer}}, lambda tree: tree["data"]["ready"]) is answer


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("---\n---\n", [], id="empty documents"),
        pytest.param(
            "{kind: A, name: a}\n---\n{kind: B, name: b}", ["a", "b"], id="documents in their order"
        ),
        pytest.param(
            "{kind: List, items: [{name: a}, {name: b}]}\n---\n{name: c}", ["a", "b", "c"], id="a list"
        ),
        pytest.param("{kind: List, items: null}", [], id="empty list"),
    ],
)
def test_text_is_parsed_into_objects(text, names):
    assert [one["name"] for one in objects(text)] == names
