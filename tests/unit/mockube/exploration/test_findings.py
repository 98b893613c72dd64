from pathlib import Path

import pytest
from msgspec.structs import replace

from mockube.exploration.findings import (
    MAX_LINES,
    ExplorationCall,
    OperatorFinding,
    read_finding,
    report,
    what_happened,
    write_finding,
)
from mockube.exploration.judgements import OperatorProblem
from mockube.exploration.plans import Disturbance, OperatorWrite, Plan, plan_of
from mockube.exploration.trace import Change, Trace
from mockube.failure import UsageError
from tests.support.instant_clock import InstantClock

WRITE = OperatorWrite(verb="create", resource="configmaps", namespace="default", number=1)
PLAN = plan_of(
    [
        Disturbance(action="crash after", write=WRITE),
        Disturbance(action="hold events", step=0, resource="pods"),
    ]
)
FINDING = OperatorFinding(
    plan=PLAN,
    problems=[OperatorProblem(type="end", text="ConfigMap a is left over", key=("end",))],
    history=["  0.10 s  step 1: apply"],
    seconds=12.3456,
    confirmed=3,
    repetitions=3,
    others=2,
)


CALL = ExplorationCall(scenario=Path("scenarios/s.yaml"), command=["./manager", "--a"], seed=7)


def test_finding_is_written_and_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "finding-1.yaml"
    write_finding(path, FINDING, CALL)
    assert "seconds: 12.346\n" in path.read_text()
    replay = read_finding(path)
    assert replay.plan == PLAN
    assert (replay.command, replay.seed) == (["./manager", "--a"], 7)


def test_paths_of_a_finding_are_relative_so_that_the_repository_can_be_moved(tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "findings").mkdir(parents=True)
    monkeypatch.chdir(project)
    write_finding(Path("findings/finding-1.yaml"), FINDING, CALL)
    project.rename(tmp_path / "moved")
    replay = read_finding(tmp_path / "moved/findings/finding-1.yaml")
    assert replay.scenario.resolve() == tmp_path / "moved/scenarios/s.yaml"
    assert replay.folder.resolve() == tmp_path / "moved"


def test_report(tmp_path):
    assert [*report(FINDING, 1, [("replay it: mockube explore --replay", tmp_path / "f.yaml")])] == [
        "finding 1: ConfigMap a is left over",
        f"  when {PLAN.disturbances[0]}",
        "  when the events of pods are held back, after step 1",
        "      0.10 s  step 1: apply",
        "  seen again in 3 of 3 repetitions, 2 other plans showed it, too",
        f"  replay it: mockube explore --replay {tmp_path}/f.yaml",
    ]


def test_finding_of_an_undisturbed_deletion_is_replayed(tmp_path):
    finding = replace(FINDING, plan=Plan(ending="delete"))
    write_finding(tmp_path / "f.yaml", finding, CALL)
    assert read_finding(tmp_path / "f.yaml").plan == finding.plan
    assert "  when nothing is disturbed, and the resource is deleted at the end" in [*report(finding, 1)]


def test_report_has_no_commands_of_terminals_and_runners():
    problem = OperatorProblem(type="exits", text="\x1b[31mred\n::error::x", key=("exits",))
    finding = replace(FINDING, problems=[problem, problem], history=["##[error]x"])
    lines = [*report(finding, 1)]
    assert all(line.isprintable() for line in lines)
    assert "##[error]" not in "".join(lines)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param("a: [", "finding.yaml: ", id="no YAML"),
        pytest.param("kind: Pod", "it is no finding of `mockube explore`", id="another kind"),
        pytest.param("type: Finding of mockube explore", "Expected `array`, got `null`", id="no plan"),
        pytest.param(
            "{type: Finding of mockube explore, scenario: s, command: [c], plan: [{action: explode}]}",
            'unknown action "explode"',
            id="unknown action",
        ),
        pytest.param(
            "{type: Finding of mockube explore, scenario: s, command: [c], plan: [{action: lose an event}]}",
            'the action "lose an event" needs an event',
            id="no event",
        ),
        pytest.param(
            "{type: Finding of mockube explore, scenario: s, command: [c], plan: [{action: crash before}]}",
            'the action "crash before" needs a write',
            id="no write",
        ),
        pytest.param(
            "{type: Finding of mockube explore, scenario: 3, command: [c], plan: []}",
            "Expected `str`",
            id="no text",
        ),
        pytest.param(
            "{type: Finding of mockube explore, scenario: s, command: [c], plan: [], ending: explode}",
            'unknown ending "explode"',
            id="unknown ending",
        ),
    ],
)
def test_file_that_is_no_finding(content, message, tmp_path):
    path = tmp_path / "finding.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=message):
        read_finding(path)


def test_history_has_ten_lines_about_disturbance():
    trace = Trace(clock=InstantClock(), operator="operator", objects={})
    for text in ("a", "b", "c", "d", "disturbance: crash", *map(str, range(20)), "end"):
        trace.note(text)
    lines = [line.split("  ")[-1] for line in what_happened(trace, [])]
    assert len(lines) == MAX_LINES
    assert lines[:4] == ["b", "c", "d", "disturbance: crash"]
    assert lines[-3:] == ["...", "19", "end"]


def test_history_has_the_writes_that_show_what_is_wrong():
    trace = Trace(clock=InstantClock(), operator="operator", objects={})
    trace.note("disturbance: crash")
    for number in range(30):
        name = "wrong" if number in (9, 19) else f"other-{number}"
        trace.changes.append(
            Change(
                seconds=trace.notes[-1].seconds, revision=number, type="ADDED", user="operator", author="the operator",
                verb="create", identity=("Secret", "default", name), before=None, after={},
            )
        )  # fmt: skip
    shown_by = [trace.changes[9], trace.changes[15], trace.changes[19]]
    problem = OperatorProblem(type="end", text="it is left over", key=("end",), shown_by=shown_by)
    lines = [line.split("  ")[-1] for line in what_happened(trace, [problem])]
    assert len(lines) == MAX_LINES
    assert lines.count("ADDED Secret wrong in default by the operator") == 2
    assert lines[-1] == "ADDED Secret other-29 in default by the operator"


def test_history_has_a_decisive_write_of_what_a_controller_has_made():
    trace = Trace(clock=InstantClock(), operator="operator", objects={})
    controller = "system:serviceaccount:kube-system:statefulset-controller"
    for number, (kind, user) in enumerate((("ADDED", controller), ("DELETED", "operator"))):
        trace.changes.append(
            Change(
                seconds=float(number), revision=number, type=kind, user=user, author=user, verb="create",
                identity=("PersistentVolumeClaim", "default", "data-0"), before={}, after={},
            )
        )  # fmt: skip
    problem = OperatorProblem(type="invariant", text="kept", key=("kept",), shown_by=trace.changes[1:])
    (line,) = what_happened(trace, [problem])
    assert line.endswith("DELETED PersistentVolumeClaim data-0 in default by operator")
