"""Which programs of static pods run, by their statuses."""

import pytest

from mockube.kubelet.running_programs import RunningPrograms, program_of, programs_of

POD = {"spec": {"containers": [{"name": "c", "command": ["/usr/bin/kube-scheduler", "--v=2"]}]}}


def status(state, restarts=0):
    return {"containerStatuses": [{"name": "c", "state": {state: {}}, "restartCount": restarts}]}


@pytest.mark.parametrize(
    ("pod_status", "expected"),
    [
        ({}, []),
        (status("waiting"), []),
        (status("terminated", 1), []),
        (status("running", 2), [("kube-scheduler", 2)]),
    ],
    ids=["none", "waiting", "terminated", "running"],
)
def test_program_runs_while_its_container_does(pod_status, expected):
    assert [*programs_of(POD, pod_status)] == expected


def test_container_without_a_command_has_no_program():
    assert program_of({"name": "c"}) == ""


def test_handlers_are_called_for_changes_only():
    programs, calls = RunningPrograms(), []
    programs.on_change(lambda: calls.append(programs.runs("p")))
    programs.set("a", {"p": 0})
    programs.set("a", {"p": 0})
    programs.set("b", {"p": 1, "q": 0})
    programs.set("a", {})
    assert calls == [{"a": 0}, {"a": 0, "b": 1}, {"b": 1}]
