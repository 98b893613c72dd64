"""Scenario files are read and responses are recorded correctly; the tests need no server."""

import pytest
import yaml

from judges.recorder.__main__ import namespace_of, record_case, with_write_budget
from judges.recorder.again import added_to, merge, with_kept
from judges.recorder.scenario import read
from mockube.apimachinery.names import check_dns1123_label
from tests.support.processes.process import ROOT
from tests.support.recorded.recordings import COUNTS

SCENARIOS = sorted((ROOT / "judges/recorder/scenarios").glob("*.yaml"))


def read_written_scenario(tmp_path, records, steps, **more):
    path = tmp_path / "scenario.yaml"
    case = {"id": "a", "steps": steps}
    path.write_text(yaml.safe_dump({"records": records, "cases": [case], **more}))
    return read(path)


def test_step_is_a_request(tmp_path):
    steps = [
        {"POST": "/x", "body": {"a": 1}},
        {"PATCH": "/x/a", "patch": "apply", "raw": "a: 1"},
        {"pause": 1},
        {"GET": "/x/a", "headers": {"Accept": "application/yaml"}, "ignore": True},
    ]
    (case,) = read_written_scenario(tmp_path, "api/x", steps).cases
    assert (case["id"], case["tags"]) == ("x/a", ["x"])
    assert [step["request"] for step in case["steps"]] == [
        {"method": "POST", "path": "/x", "body": {"a": 1}},
        {
            "method": "PATCH",
            "path": "/x/a",
            "headers": {"Content-Type": "application/apply-patch+yaml"},
            "raw": "a: 1",
        },
        {"pause": 1},
        {"method": "GET", "path": "/x/a", "headers": {"Accept": "application/yaml"}, "ignore": True},
    ]


def test_step_of_session_is_a_command(tmp_path):
    commands = ["kubectl get pods", "kubectl delete pod a", {"cmd": "kubectl apply -f -", "stdin": "a: 1"}]
    scenario = read_written_scenario(tmp_path, "kubectl/x", commands, controllers=True)
    assert scenario.is_session
    assert scenario.with_controllers
    assert scenario.cases[0]["steps"] == [
        {"cmd": "kubectl get pods"},
        {"cmd": "kubectl delete pod a", "retry": False},
        {"cmd": "kubectl apply -f -", "stdin": "a: 1", "retry": False},
    ]


def test_repeated_case_is_refused(tmp_path):
    case = {"id": "a", "steps": []}
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump({"records": "api/x", "cases": [case, case]}))
    with pytest.raises(ValueError, match="these cases come twice"):
        read(path)


class Echo:
    """A client whose response contains the request."""

    def send(self, request):
        return {"status": 200, "type": "application/json", "body": {"uid": "5", "sent": request}}


def test_varying_values_are_replaced_in_recording(tmp_path):
    (case,) = read_written_scenario(tmp_path, "api/x", [{"GET": "/${ns}"}]).cases
    (step,) = record_case(Echo(), case)["steps"]
    assert step["request"]["path"] == "/${ns}"
    assert step["response"]["body"] == {"uid": "<uid>", "sent": {"method": "GET", "path": "/<ns>"}}


def test_budget_is_minimum_and_maximum_of_two_runs():
    first, second = (
        {"id": "a", "steps": [{"request": {}, "found": found}]}
        for found in ({"job create pods": 1, "job write jobs/status": 3}, {"job create pods": 1})
    )
    (step,) = with_write_budget(first, second)["steps"]
    assert step == {"request": {}, "budget": {"job create pods": [1, 1], "job write jobs/status": [0, 3]}}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_is_recorded(path):
    scenario = read(path)
    assert scenario.is_session or scenario.records in COUNTS


def test_changed_and_missing_responses_are_kept_for_older_minor():
    before = [{"id": "same", "steps": [1]}, {"id": "changed", "steps": [2]}, {"id": "unsteady", "steps": [3]}]
    again = [{"id": "same", "steps": [1]}, {"id": "changed", "steps": [4]}]
    merged = merge(before, again)
    assert (merged.newest, merged.older) == (again, before[1:])


def test_repeated_recording_keeps_responses_of_older_minor():
    present = [{"id": "changed", "steps": [2]}]
    again = [{"id": "changed", "steps": [4]}, {"id": "other", "steps": [5]}]
    assert added_to(present, again) == [*present, again[1]]


def test_recording_that_varies_is_kept_for_another_patch_release():
    before = [{"id": "unsteady", "steps": [3]}, {"id": "changed", "steps": [2]}]
    newest = [{"id": "changed", "steps": [4]}]
    assert with_kept(newest, before) == [before[0], newest[0]]


def test_cases_have_namespaces_with_valid_and_different_names():
    ids = [
        "default/apps.k8s.io-v1-x-1",
        "default/apps-k8s.io-v1-x-1",
        f"validation/{'long' * 30}/A",
        f"validation/{'long' * 30}/B",
    ]
    namespaces = {namespace_of(id_) for id_ in ids}
    assert len(namespaces) == 4
    assert all(check_dns1123_label(name) == [] for name in namespaces)
