"""Selectors of Jobs, template generations of DaemonSets, and disabled StatefulSet fields."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.requests import request

JOBS = NEWEST.strategies[GroupResource("batch", "jobs")]
DAEMON_SETS = NEWEST.strategies[GroupResource("apps", "daemonsets")]

OWN = {
    "batch.kubernetes.io/controller-uid": "u",
    "batch.kubernetes.io/job-name": "j",
    "controller-uid": "u",
    "job-name": "j",
}


def job(labels=None, template=None, **spec):
    metadata = {"name": "j", "uid": "u"} | ({"labels": labels} if labels else {})
    of_template = {"metadata": {"labels": template} if template else {}, "spec": {}}
    tree = {"metadata": metadata, "spec": {"template": of_template, **spec}}
    JOBS.prepare_create(tree, request())
    return tree


@pytest.mark.parametrize(
    ("labels", "template", "expected", "expected_template"),
    [
        pytest.param(None, None, OWN, OWN, id="no labels"),
        pytest.param({"mine": "1"}, None, {"mine": "1"}, OWN, id="labels of the job"),
        pytest.param(
            {"a": "1"}, {"a": "1"}, OWN | {"a": "1"}, OWN | {"a": "1"}, id="labels copied from the template"
        ),
        pytest.param(
            None,
            {"job-name": "x"},
            OWN | {"job-name": "x"},
            OWN | {"job-name": "x"},
            id="existing label is kept",
        ),
    ],
)
def test_job_selector_uses_uid(labels, template, expected, expected_template):
    made = job(labels, template)
    assert made["metadata"]["labels"] == expected
    assert made["spec"]["template"]["metadata"]["labels"] == expected_template
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}


def test_manual_job_selector_is_kept():
    made = job(manualSelector=True, selector={"matchLabels": {"a": "1"}})
    assert made["spec"]["selector"] == {"matchLabels": {"a": "1"}}
    assert "labels" not in made["metadata"]


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def daemon_set(generation=None, template=1):
    metadata = {"annotations": {TEMPLATE_GENERATION: generation}} if generation else {}
    return {"metadata": {"name": "d"} | metadata, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, "1", id="starts at 1"),
        pytest.param("7", "7", id="explicit value"),
        pytest.param("rubbish", "1", id="not a number"),
    ],
)
def test_new_daemon_set_starts_template_generation(given, expected):
    tree = daemon_set(given)
    DAEMON_SETS.prepare_create(tree, request())
    assert tree["metadata"]["annotations"] == {TEMPLATE_GENERATION: expected}


@pytest.mark.parametrize(
    ("subresource", "template", "expected"),
    [
        pytest.param(MAIN, 2, "6", id="a new template"),
        pytest.param(MAIN, 1, "5", id="unchanged template keeps its generation"),
        pytest.param("status", 1, "5", id="through the status"),
    ],
)
def test_template_change_increases_template_generation(subresource, template, expected):
    new = daemon_set("99", template)
    DAEMON_SETS.prepare_update[subresource](new, daemon_set("5"), request())
    assert new["metadata"]["annotations"] == {TEMPLATE_GENERATION: expected}


def test_stateful_set_max_unavailable_is_dropped_until_1_36():
    stateful_sets = kinds_of("1.36").strategies[GroupResource("apps", "statefulsets")]
    heard = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}}
    for old in (None, heard):
        new = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1, "maxUnavailable": 2}}}}
        stateful_sets.disabled.drop(new, old)
        assert new == heard


@pytest.mark.parametrize(
    ("group", "resource", "policy"),
    [
        pytest.param("batch", "jobs", "Orphan", id="jobs orphan their pods"),
        pytest.param("", "replicationcontrollers", "Orphan", id="replication controllers orphan their pods"),
        pytest.param("apps", "deployments", "Background", id="deployments delete in the background"),
        pytest.param("", "events", "Unsupported", id="not for events"),
    ],
)
def test_default_deletion_policy_of_dependents(group, resource, policy):
    assert NEWEST.strategies[GroupResource(group, resource)].dependents == policy
