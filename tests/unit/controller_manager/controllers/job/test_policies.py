"""The rules of the pod failure policy and of the success policy of a Job."""

import pytest

from mockube.client.podview import PodView
from mockube.controller_manager.controllers.job import index_ranges
from mockube.controller_manager.controllers.job.policies import NO_RULE, pod_failure, success_message


def codes(action, operator, *values, **more):
    return {"action": action, "onExitCodes": {"operator": operator, "values": [*values], **more}}


def on_condition(action, kind, **status):
    return {"action": action, "onPodConditions": [{"type": kind, **status}]}


def pod(code=None, *, init=None, name="c", **conditions):
    def statuses(exit_code):
        if exit_code is None:
            return [{"name": name, "state": {"running": {}}}]
        return [{"name": name, "state": {"terminated": {"exitCode": exit_code}}}]

    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    status = {
        "containerStatuses": statuses(code),
        "initContainerStatuses": statuses(init) if init is not None else [],
        "conditions": listed,
    }
    return PodView.of({"metadata": {"name": "p", "namespace": "default"}, "spec": {}, "status": status})


@pytest.mark.parametrize(
    ("rules", "subject", "action"),
    [
        ([], pod(1), ""),
        ([codes("FailJob", "In", 1, 2)], pod(1), "FailJob"),
        ([codes("FailJob", "In", 2)], pod(1), ""),
        ([codes("FailJob", "NotIn", 2)], pod(1), "FailJob"),
        ([codes("FailJob", "NotIn", 1)], pod(1), ""),
        ([codes("FailJob", "NotIn", 2)], pod(0), ""),
        ([codes("FailJob", "In", 0)], pod(0), ""),
        ([codes("FailJob", "Near", 1)], pod(1), ""),
        ([codes("FailJob", "In", 1)], pod(), ""),
        ([codes("FailJob", "In", 1, containerName="c")], pod(1), "FailJob"),
        ([codes("FailJob", "In", 1, containerName="other")], pod(1), ""),
        ([codes("FailJob", "In", 1)], pod(0, init=1), "FailJob"),
        ([codes("Ignore", "In", 2), codes("FailIndex", "In", 1)], pod(1), "FailIndex"),
        ([codes("Ignore", "In", 1), codes("FailIndex", "In", 1)], pod(1), "Ignore"),
        ([on_condition("Ignore", "DisruptionTarget")], pod(1, DisruptionTarget="True"), "Ignore"),
        ([on_condition("Ignore", "DisruptionTarget")], pod(1, DisruptionTarget="False"), ""),
        ([on_condition("Ignore", "Ready", status="False")], pod(1, Ready="False"), "Ignore"),
        ([on_condition("Ignore", "Ready", status="False")], pod(1, Other="False"), ""),
    ],
)
def test_first_rule_that_matches_decides(rules, subject, action):
    found = pod_failure({"spec": {"podFailurePolicy": {"rules": rules}}}, subject)
    assert found.action == action
    assert found.counts is (action != "Ignore")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            codes("FailJob", "In", 7),
            "Container c for pod default/p failed with exit code 7 matching FailJob rule at index 1",
        ),
        (
            on_condition("FailJob", "Ready", status="False"),
            "Pod default/p has condition Ready matching FailJob rule at index 1",
        ),
        (codes("FailIndex", "In", 7), ""),
    ],
)
def test_rule_that_fails_the_job_has_a_message(rule, message):
    rules = [codes("FailJob", "In", 1), rule]
    assert (
        pod_failure({"spec": {"podFailurePolicy": {"rules": rules}}}, pod(7, Ready="False")).message
        == message
    )


def test_job_without_policy_has_no_rule():
    assert pod_failure({"spec": {}}, pod(1)) is NO_RULE


@pytest.mark.parametrize(
    ("rule", "succeeded", "expected"),
    [
        ({"succeededCount": 2}, "0,3", True),
        ({"succeededCount": 3}, "0,3", False),
        ({"succeededIndexes": "0-1"}, "0-1", True),
        ({"succeededIndexes": "0-1"}, "0-3", True),
        ({"succeededIndexes": "0-1"}, "1", False),
        ({"succeededIndexes": "0-1", "succeededCount": 1}, "1", True),
        ({"succeededIndexes": "0-1", "succeededCount": 1}, "3", False),
        ({"succeededIndexes": ""}, "0", False),
        ({"succeededIndexes": "", "succeededCount": 0}, "0", False),
        ({}, "0", False),
        ({"succeededCount": 0}, "", False),
    ],
)
def test_success_policy_is_met_by_indexes(rule, succeeded, expected):
    job = {"spec": {"completions": 5, "successPolicy": {"rules": [{"succeededCount": 5}, rule]}}}
    found = success_message(job, index_ranges.parse(succeeded, 5))
    assert found == ("Matched rules at index 1" if expected else "")
    assert success_message({"spec": {"completions": 5}}, index_ranges.parse("0", 5)) == ""
