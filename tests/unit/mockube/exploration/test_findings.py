import pytest
from msgspec.structs import replace

from mockube.exploration.findings import (
    MAX_LINES,
    OperatorFinding,
    read_finding,
    remove_findings,
    report,
    what_happened,
    write_finding,
)
from mockube.exploration.judgements import OperatorProblem
from mockube.exploration.plans import Disturbance, OperatorWrite, Plan, plan_of
from mockube.exploration.trace import Trace
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
    confirmed=3,
    repetitions=3,
    others=2,
)


def test_finding_is_written_and_read(tmp_path):
    path = tmp_path / "findings" / "finding-1.yaml"
    write_finding(path, FINDING, scenario="/s.yaml", command=["./manager", "--a"], seed=7)
    replay = read_finding(path)
    assert replay.plan == PLAN
    assert (replay.scenario, replay.command, replay.seed) == ("/s.yaml", ["./manager", "--a"], 7)


def test_report(tmp_path):
    assert [*report(FINDING, 1, tmp_path / "f.yaml")] == [
        "finding 1: ConfigMap a is left over",
        f"  when {PLAN.disturbances[0]}",
        "  when the events are held back of pods, after step 1",
        "      0.10 s  step 1: apply",
        "  seen again in 3 of 3 repetitions, 2 other plans showed it, too",
        f"  replay it: mockube explore --replay {tmp_path}/f.yaml",
    ]


def test_finding_of_an_undisturbed_deletion_is_replayed(tmp_path):
    finding = replace(FINDING, plan=Plan(ending="delete"))
    write_finding(tmp_path / "f.yaml", finding, scenario="/s.yaml", command=["a"], seed=0)
    assert read_finding(tmp_path / "f.yaml").plan == finding.plan
    assert "  when nothing is disturbed, and the resource is deleted at the end" in [*report(finding, 1)]


def test_report_has_no_commands_of_terminals_and_runners():
    problem = OperatorProblem(type="exits", text="\x1b[31mred\n::error::x", key=("exits",))
    finding = replace(FINDING, problems=[problem, problem], history=["##[error]x"])
    lines = [*report(finding, 1)]
    assert all(line.isprintable() for line in lines)
    assert "##[error]" not in "".join(lines)


def test_findings_of_an_earlier_exploration_are_removed(tmp_path):
    write_finding(tmp_path / "finding-1.yaml", FINDING, scenario="/s.yaml", command=["a"], seed=0)
    (tmp_path / "finding-own.yaml").write_text("kind: Pod")
    remove_findings(tmp_path)
    remove_findings(tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["finding-own.yaml"]


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
    lines = [line.split("  ")[-1] for line in what_happened(trace)]
    assert len(lines) == MAX_LINES
    assert lines[:4] == ["b", "c", "d", "disturbance: crash"]
    assert lines[-3:] == ["...", "19", "end"]
