from functools import partial
from pathlib import Path

import pytest
import yaml

import mockube
from mockube.exploration.api import NOT_APPLIED, replay_problem
from mockube.exploration.plans import UNDISTURBED
from mockube.exploration.run_outcome import RunOutcome
from mockube.exploration.trace import Trace
from tests.support.explored_operators import SCENARIO, careful
from tests.support.instant_clock import InstantClock


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(SCENARIO))
    return path


@pytest.mark.parametrize(
    "main",
    [
        pytest.param(partial(careful), id="partial"),
        pytest.param(lambda _: None, id="lambda"),
    ],
)
def test_test_of_a_finding_needs_a_function_of_a_module(main, scenario, tmp_path):
    with pytest.raises(TypeError, match="a main that a test can import: a function of a module"):
        mockube.explore(scenario, main=main, output=tmp_path / "findings")


def test_files_of_findings_need_a_scenario_in_a_file(tmp_path):
    with pytest.raises(TypeError, match="output needs a scenario in a file"):
        mockube.explore(SCENARIO, main=careful, output=tmp_path / "findings")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({}, "the operator of this finding is a function: replay_finding needs main", id="none"),
        pytest.param({"command": ["a"], "main": careful}, "a command or main, and not both", id="both"),
    ],
)
def test_operator_of_a_replay_is_a_command_or_a_function(arguments, message, scenario):
    finding = scenario.with_name("finding-1.yaml")
    tree = {
        "type": "Finding of mockube explore",
        "scenario": Path(scenario).name,
        "function": "a:b",
        "plan": [],
    }
    finding.write_text(yaml.safe_dump(tree))
    with pytest.raises(TypeError, match=message):
        mockube.replay_finding(finding, **arguments)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({}, "", id="none"),
        pytest.param({"problem": "it exited"}, "the plan could not be run: it exited", id="no run"),
        pytest.param({"is_applied": False}, NOT_APPLIED, id="not applied"),
    ],
)
def test_replay_shows_nothing_if_its_plan_did_not_take_place(fields, problem):
    trace = Trace(clock=InstantClock(), operator="operator", objects={})
    assert replay_problem(RunOutcome(plan=UNDISTURBED, trace=trace, **fields)) == problem
