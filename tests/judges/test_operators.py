"""`make operators`: its list of operators, and which findings show a published bug. No operator is run."""

import pytest
import yaml
from msgspec.structs import replace

from judges.operators.bugs import HERE, Bug, Operator, read_operators, texts_of_plan
from judges.operators.exploring import is_complete, processor_seconds
from judges.operators.programs import prepare
from judges.operators.well_made import FILES, TrueFinding, WellMadeOperator, read_well_made
from judges.suites.sources import SourceMissing

PATTERNS = {"intermediate state", "stale state", "unobserved state", "indirect"}
BUG = Bug(
    issue="owner/name#1",
    pattern="stale state",
    happens="It deletes the new object.",
    scenario="a.yaml",
    when="websites.* are old",
    finding="StatefulSet",
)
STALE = {
    "action": "crash and stale lists",
    "write": {"verb": "create", "resource": "pods", "namespace": "default", "number": 0},
    "resource": "websites.example.com",
}
CRASH = {"action": "crash after", "write": STALE["write"]}


def finding(*plan, problems=("StatefulSet.apps web in default is missing",)):
    return {"type": "Finding", "problems": [*problems], "plan": [*plan], "history": []}


def test_every_operator_has_a_source_and_bugs_with_scenarios():
    for operator in read_operators().values():
        assert bool(operator.module) != bool(operator.repository), operator.name
        assert operator.version, operator.name
        assert operator.bugs or operator.out_of_reach, operator.name
        assert bool(operator.bugs) == bool(operator.command), operator.name
        for bug in operator.bugs:
            assert bug.pattern in PATTERNS, bug.issue
            assert bug.happens.endswith("."), bug.issue
        assert all(isinstance(reason, str) and reason for reason in operator.out_of_reach.values())


def test_every_scenario_of_the_list_is_one_of_its_folder_and_can_be_read():
    operators = read_operators().values()
    listed = {scenario for each in operators for scenario, _ in each.scenarios()}
    files = {name for each in operators for name in each.files}
    assert listed | files == {path.name for path in (HERE / "scenarios").iterdir()}
    for name in listed:
        assert yaml.safe_load((HERE / "scenarios" / name).read_text())["act"], name


@pytest.mark.parametrize(
    ("found", "is_shown"),
    [
        (finding(STALE), True),
        (finding(CRASH, STALE), True),
        (finding(CRASH), False),
        (finding(STALE, problems=["Service web in default is missing"]), False),
    ],
)
def test_finding_shows_a_bug_if_plan_and_problem_fit(found, is_shown):
    assert BUG.is_shown_by(found) == is_shown


def test_every_well_made_operator_has_a_source_and_reasons():
    for operator in read_well_made().values():
        sources = (operator.module, operator.repository, operator.requirements)
        assert sum(map(bool, sources)) == 1, operator.name
        names = (operator.scenario, *operator.files)
        assert all((FILES / name).is_file() for name in names), operator.name
        assert yaml.safe_load((FILES / operator.scenario).read_text())["act"], operator.name
        assert all(each.why.endswith(".") for each in operator.findings), operator.name


def test_every_file_of_the_well_made_operators_is_listed():
    listed = {name for each in read_well_made().values() for name in (each.scenario, *each.files)}
    assert listed == {path.name for path in FILES.iterdir() if path.is_file()}


def test_finding_about_a_well_made_operator_is_explained_by_plan_and_problem():
    reason = TrueFinding(
        finding="Deployment.* differs", when="somebody edits", why="It reads what exists once."
    )
    operator = WellMadeOperator(
        name="a", version="1", command=["a"], scenario="a.yaml", findings=[reason], module="a"
    )
    edited = {"action": "edit an owned object", "step": 0, "object": "Deployment.apps/web"}
    problems = ["Deployment.apps web in default differs: spec.replicas: 1 -> 2", "it does not end by SIGTERM"]
    assert operator.unexplained(finding(edited, problems=problems)) == problems[1:]
    assert operator.unexplained(finding(CRASH, problems=problems)) == problems


def test_texts_of_a_plan_are_those_that_explore_prints():
    assert texts_of_plan(finding(CRASH)) == [
        "the operator crashes after the write is executed, before it has the answer, at create of pods in default"
    ]


def test_finding_file_without_its_last_field_is_not_complete():
    assert is_complete(finding(CRASH))
    assert not is_complete(None)
    assert not is_complete({"type": "Finding", "problems": []})


def test_processor_time_of_a_missing_process_is_none():
    assert processor_seconds(2**22 + 1) == 0.0


def test_operator_without_a_module_names_the_folder_that_it_needs(tmp_path):
    operator = read_operators_with_repository()
    with pytest.raises(SourceMissing, match="OPERATORS=DIR"):
        prepare(operator, None, tmp_path)


def test_operator_in_a_folder_of_the_user_is_built_once(tmp_path):
    source = tmp_path / "given/db"
    source.mkdir(parents=True)
    operator = Operator(name="db", version="1", repository="a/b", build="echo built >> program")
    for _ in range(2):
        folder = prepare(operator, tmp_path / "given", tmp_path / "db")
    assert (folder / "program").read_text() == "built\n"
    (source / "program").unlink()
    with pytest.raises(SourceMissing, match="sh -c exit 3"):
        prepare(replace(operator, build="exit 3"), tmp_path / "given", tmp_path / "db")


def read_operators_with_repository():
    return next(each for each in read_operators().values() if each.repository)
