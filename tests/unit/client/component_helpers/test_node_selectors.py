"""Which nodes a node selector, required affinity and `nodeSelector` match."""

import pytest

from mockube.client.component_helpers.node_selectors import (
    matches_term,
    required_hostnames,
    required_names,
    required_node_affinity,
    selects,
)

NODE = {"metadata": {"name": "a", "labels": {"disk": "ssd", "cores": "8", "text": "x"}}}


def requirement(key, operator, *values):
    return {"key": key, "operator": operator, "values": [*values]}


@pytest.mark.parametrize(
    ("one", "is_matched"),
    [
        (requirement("disk", "In", "hdd", "ssd"), True),
        (requirement("disk", "In", "hdd"), False),
        (requirement("absent", "In", "x"), False),
        (requirement("disk", "NotIn", "hdd"), True),
        (requirement("disk", "NotIn", "ssd"), False),
        (requirement("absent", "NotIn", "x"), True),
        (requirement("disk", "Exists"), True),
        (requirement("absent", "Exists"), False),
        (requirement("disk", "DoesNotExist"), False),
        (requirement("absent", "DoesNotExist"), True),
        (requirement("cores", "Gt", "7"), True),
        (requirement("cores", "Gt", "8"), False),
        (requirement("cores", "Lt", "9"), True),
        (requirement("cores", "Lt", "8"), False),
        (requirement("absent", "Lt", "8"), False),
        (requirement("text", "Gt", "1"), False),
        (requirement("cores", "Gt", "x"), False),
        (requirement("cores", "Gt"), False),
    ],
    ids=lambda one: (
        " ".join((one["key"], one["operator"], *one["values"])) if isinstance(one, dict) else None
    ),
)
def test_requirement_matches_label_of_node(one, is_matched):
    assert matches_term({"matchExpressions": [one]}, NODE) is is_matched


@pytest.mark.parametrize(
    ("term", "is_matched"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"matchExpressions": [], "matchFields": []}, False, id="empty lists"),
        pytest.param({"matchFields": [requirement("metadata.name", "In", "a")]}, True, id="its name"),
        pytest.param({"matchFields": [requirement("metadata.name", "In", "b")]}, False, id="another name"),
        pytest.param(
            {
                "matchExpressions": [requirement("disk", "Exists")],
                "matchFields": [requirement("metadata.name", "In", "b")],
            },
            False,
            id="a label, but not the name",
        ),
        pytest.param(
            {
                "matchExpressions": [requirement("absent", "Exists")],
                "matchFields": [requirement("metadata.name", "In", "a")],
            },
            False,
            id="the name, but not a label",
        ),
        pytest.param(
            {"matchExpressions": [requirement("disk", "Exists"), requirement("absent", "Exists")]},
            False,
            id="one of two labels",
        ),
    ],
)
def test_term_matches_node_with_all_of_its_requirements(term, is_matched):
    assert matches_term(term, NODE) is is_matched


def test_selector_matches_node_by_one_of_its_terms():
    terms = [{"matchExpressions": [requirement(key, "Exists")]} for key in ("absent", "disk")]
    assert selects({"nodeSelectorTerms": terms}, NODE)
    assert not selects({"nodeSelectorTerms": terms[:1]}, NODE)
    assert not selects({"nodeSelectorTerms": []}, NODE)


def required(key):
    terms = [{"matchExpressions": [requirement(key, "Exists")]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("spec", "is_matched"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, True, id="label"),
        pytest.param({"nodeSelector": {"disk": "ssd", "os": "linux"}}, False, id="one of two labels"),
        pytest.param({"affinity": required("disk")}, True, id="affinity"),
        pytest.param({"affinity": required("absent")}, False, id="other affinity"),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}, "affinity": required("absent")}, False, id="only the label"
        ),
        pytest.param(
            {"nodeSelector": {"disk": "hdd"}, "affinity": required("disk")}, False, id="only the affinity"
        ),
    ],
)
def test_pod_may_run_on_nodes_that_selector_and_affinity_match(spec, is_matched):
    assert required_node_affinity(spec)(NODE) is is_matched


@pytest.mark.parametrize(
    "spec", [{}, {"nodeSelector": {}}, {"affinity": {"nodeAffinity": {}}}, {"affinity": None}]
)
def test_pod_without_requirements_may_run_everywhere(spec):
    assert required_node_affinity(spec) is None


def terms(name, *requirements_of_terms):
    return {"nodeSelectorTerms": [{name: [*requirements]} for requirements in requirements_of_terms]}


@pytest.mark.parametrize(
    ("function", "name", "key"),
    [
        (required_names, "matchFields", "metadata.name"),
        (required_hostnames, "matchExpressions", "kubernetes.io/hostname"),
    ],
)
def test_only_nodes_that_a_selector_can_match(function, name, key):
    a_or_b, b_or_c = requirement(key, "In", "a", "b"), requirement(key, "In", "b", "c")
    assert function(terms(name, [a_or_b])) == {"a", "b"}
    assert function(terms(name, [a_or_b], [requirement(key, "In", "d")])) == {"a", "b", "d"}
    assert function(terms(name, [a_or_b, b_or_c, requirement("disk", "Exists")])) == {"b"}
    assert function(terms(name, [a_or_b], [requirement("disk", "Exists")])) is None
    assert function(terms(name, [requirement(key, "NotIn", "a")])) is None
    assert function(terms(name)) == frozenset()
    assert function(None) is None
