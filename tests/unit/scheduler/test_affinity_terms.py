"""The terms of pod affinity, and the namespaces in which they match pods."""

import pytest

from mockube.client.podview import PodView
from mockube.scheduler.affinity_terms import NO_TERMS, terms_of
from tests.support.controllers.scheduler_objects import pod

NAMESPACES = {"default": {}, "blue": {"team": "blue"}, "red": {"team": "red"}}


def terms(**fields):
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **fields}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return terms_of(PodView.of(pod(affinity=affinity)))


def matched(term):
    labels_of = NAMESPACES.get
    pods = [PodView.of(pod(namespace=name, labels={"app": "web"})) for name in NAMESPACES]
    return [one.key.namespace for one in pods if term.matches(one, labels_of)]


BLUE = {"matchLabels": {"team": "blue"}}


@pytest.mark.parametrize(
    ("fields", "namespaces"),
    [
        pytest.param({}, ["default"], id="that of the pod"),
        pytest.param({"namespaces": ["red"]}, ["red"], id="names"),
        pytest.param({"namespaceSelector": {}}, ["default", "blue", "red"], id="all"),
        pytest.param({"namespaceSelector": BLUE}, ["blue"], id="selector"),
        pytest.param({"namespaces": ["red"], "namespaceSelector": BLUE}, ["blue", "red"], id="either"),
        pytest.param({"namespaces": []}, ["default"], id="no names"),
    ],
)
def test_term_matches_pods_in_its_namespaces(fields, namespaces):
    (term,) = terms(**fields).affinity
    assert matched(term) == namespaces


@pytest.mark.parametrize(
    ("selector", "is_matched"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({}, True),
        (None, False),
    ],
)
def test_term_matches_pods_with_its_labels(selector, is_matched):
    """Without a selector it matches none."""
    (term,) = terms(labelSelector=selector).affinity
    assert matched(term) == (["default"] if is_matched else [])


def test_required_and_preferred_terms_of_pod_are_separate():
    required = {"topologyKey": "zone", "labelSelector": {}}
    preferred = {"weight": 7, "podAffinityTerm": {"topologyKey": "rack", "labelSelector": {}}}
    rules = {
        "requiredDuringSchedulingIgnoredDuringExecution": [required],
        "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
    }
    for kind, names in (
        ("podAffinity", ("affinity", "preferred_affinity")),
        ("podAntiAffinity", ("anti_affinity", "preferred_anti_affinity")),
    ):
        found = terms_of(PodView.of(pod(affinity={kind: rules})))
        both = [getattr(found, name) for name in names]
        assert [[(one.topology_key, one.weight) for one in some] for some in both] == [
            [("zone", 0)],
            [("rack", 7)],
        ]
        others = {"affinity", "anti_affinity", "preferred_affinity", "preferred_anti_affinity"} - {*names}
        assert not any(getattr(found, name) for name in others)
        assert found
        for name in (*rules,):
            assert terms_of(PodView.of(pod(affinity={kind: {name: rules[name]}})))


def test_pod_without_pod_affinity_has_no_terms():
    for affinity in (None, {}, {"nodeAffinity": {}}, {"podAffinity": {}}, {"podAntiAffinity": None}):
        assert terms_of(PodView.of(pod(affinity=affinity))) is NO_TERMS
    assert not NO_TERMS
