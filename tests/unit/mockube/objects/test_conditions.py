"""The conditions that `wait` takes, and mistyped ones."""

import pytest

from mockube.apimachinery.groups import GroupKind
from mockube.objects.conditions import check_condition, read_condition
from mockube.objects.errors import InvalidType, InvalidValue

AVAILABLE = {"type": "Available", "status": "True"}
NOT_YET = {"type": "Available", "status": "False"}
RUNNING = {"status": {"phase": "Running", "ready": True, "count": 3}}


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
    tree = {"metadata": {"generation": generation}, "status": status}
    assert (read_condition("Available").find_problem(tree) is None) is met


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        pytest.param("available", False, id="lower case"),
        pytest.param("Available=False", True, id="with a status"),
        pytest.param("condition=Available=false", True, id="as for kubectl"),
    ],
)
def test_type_is_compared_without_case_and_with_status(condition, met):
    problem = read_condition(condition).find_problem({"status": {"conditions": [NOT_YET]}})
    assert (problem is None) is met


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        pytest.param("jsonpath={.status.phase}=Running", True, id="equal"),
        pytest.param("jsonpath={.status.phase}=Failed", False, id="different"),
        pytest.param("jsonpath=.status.count=3", True, id="number, without braces"),
        pytest.param("jsonpath={.status.ready}=true", True, id="boolean"),
        pytest.param("jsonpath={.status.ready}", True, id="present"),
        pytest.param("jsonpath={.status.other}", False, id="absent"),
    ],
)
def test_path_is_compared_with_value(condition, met):
    assert (read_condition(condition).find_problem(RUNNING) is None) is met


def test_value_of_path_is_described():
    condition = read_condition("jsonpath={.status.phase}=Failed")
    assert condition.find_problem(RUNNING) == ".status.phase is Running, not Failed"
    assert condition.find_problem({}) == ".status.phase is not set"


def test_predicate_that_cannot_be_evaluated_is_not_met_and_explained():
    condition = read_condition(lambda tree: tree["status"]["readyReplicas"] == 3)
    assert condition.find_problem({"status": {"readyReplicas": 3}}) is None
    assert condition.find_problem({}) == "the condition raised KeyError: 'status'"
    assert condition.find_problem({"status": {"readyReplicas": 1}}) == ""


def test_predicate_that_finds_no_item_is_not_met():
    condition = read_condition(lambda tree: next(item for item in tree["items"] if item))
    assert condition.find_problem({"items": []}) == "the condition raised StopIteration"


def test_predicate_that_returns_a_coroutine_is_refused():
    async def get():
        """Stand for a method that is awaited."""

    with pytest.raises(InvalidType, match="not a coroutine"):
        read_condition(lambda _: get()).find_problem({})


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        pytest.param(
            5, InvalidType, 'a str such as "Available", or a function of the object, not int', id="int"
        ),
        pytest.param(
            lambda: True, InvalidType, "must be a function of one object: too many", id="no argument"
        ),
        pytest.param("", InvalidValue, '"" is no condition', id="empty"),
        pytest.param("Ready=Maybe", InvalidValue, '"Ready=Maybe" is no condition', id="unknown status"),
        pytest.param("delete", InvalidValue, "use wait_gone", id="deletion"),
        pytest.param("jsonpath={.status", InvalidValue, "is not valid: write", id="open brace"),
        pytest.param("jsonpath={.a[}=1", InvalidValue, "is not a valid path: ", id="invalid path"),
    ],
)
def test_invalid_condition_is_refused(condition, error, message):
    with pytest.raises(error) as raised:
        read_condition(condition)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "condition", "message"),
    [
        pytest.param(
            GroupKind("apps", "Deployment"),
            "Avalable",
            'a Deployment has no condition "Avalable": did you mean "Available"?',
            id="mistyped",
        ),
        pytest.param(
            GroupKind("", "Pod"),
            "Running",
            '"Running" is a phase of a Pod, not a condition: write "jsonpath={.status.phase}=Running"',
            id="phase",
        ),
        pytest.param(
            GroupKind("apps", "StatefulSet"),
            "Ready",
            'a StatefulSet has no conditions: wait for its pods, as "jsonpath={.status.readyReplicas}=3"',
            id="kind without conditions",
        ),
        pytest.param(
            GroupKind("", "ConfigMap"),
            "Ready",
            'a ConfigMap has no conditions: wait for "create", "jsonpath={.metadata.labels.app}=web", or a function of the object',
            id="kind without status",
        ),
    ],
)
def test_condition_that_is_never_met_is_refused_at_once(kind, condition, message):
    with pytest.raises(InvalidValue) as raised:
        check_condition(kind, read_condition(condition))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        pytest.param(GroupKind("", "Pod"), "example.com/in-load-balancer", id="readiness gate"),
        pytest.param(GroupKind("", "Node"), "KernelDeadlock", id="condition of other software"),
        pytest.param(GroupKind("magic.example", "Unicorn"), "Avalable", id="custom resource"),
    ],
)
def test_condition_of_other_software_is_allowed(kind, condition):
    check_condition(kind, read_condition(condition))
