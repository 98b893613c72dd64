import argparse
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from mockube.cli import explore
from mockube.exploration.exploration import LearningProgress, PlanProgress, SuspicionProgress
from mockube.exploration.finding_files import FindingFolder
from mockube.exploration.findings import ExplorationCall, OperatorFinding, read_finding
from mockube.exploration.judgements import OperatorProblem
from mockube.exploration.plans import RESTART, UNDISTURBED, Disturbance, plan_of
from mockube.exploration.run_outcome import RunOutcome
from mockube.exploration.trace import Trace
from mockube.failure import Failure, UsageError
from tests.support.instant_clock import InstantClock

SCENARIO = {"act": [{"apply": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}}}]}
FINDING = OperatorFinding(
    plan=UNDISTURBED, problems=[OperatorProblem(type="end", text="a stays", key=("a",))], history=[]
)

SUSPECTED = OperatorFinding(
    plan=plan_of([Disturbance(action=RESTART, step=1)]),
    problems=FINDING.problems,
    history=[],
    repeated_seconds=12.4,
    confirmed=2,
    repetitions=3,
)
SUSPICION = (
    "mockube: seen again in 2 of 3 repetitions, after 12 s: a stays\n"
    f"mockube:   when {SUSPECTED.plan.parts[0]}\n"
    "mockube:   it is a finding unless the operator repairs it, for which it has half a minute, or as long as it says until it tries again\n"
)


def test_finding_stays_when_the_exploration_is_interrupted(tmp_path, monkeypatch, capsys):
    others = [replace(FINDING, problems=[replace(FINDING.problems[0], text=text)]) for text in ("a", "b")]

    async def interrupted(_scenario, _starter, _options, show_progress, show_finding):
        for finding in (FINDING, *others):
            show_progress(SuspicionProgress(finding=finding))
        show_progress(SuspicionProgress(finding=others[1], is_repaired=True))
        show_finding(FINDING)
        raise KeyboardInterrupt

    monkeypatch.setattr("mockube.exploration.api.run_exploration", interrupted)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_bytes(orjson.dumps(SCENARIO))
    options = argparse.Namespace(
        scenario=str(scenario),
        command=["--", "true"],
        output=tmp_path,
        replay=None,
        tests="pytest",
        **dict.fromkeys(("budget", "plans", "seed", "jobs", "patience"), 0),
    )
    with pytest.raises(KeyboardInterrupt):
        explore.run(options)
    path = tmp_path / "finding-1.yaml"
    assert read_finding(path).command == ["true"]
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2:] == [
        f"mockube: what was found until now: {path}",
        "mockube: not confirmed, and not written: a",
    ]


@pytest.mark.parametrize(
    ("fields", "finding", "code", "text"),
    [
        pytest.param({}, None, 0, "nothing is wrong\n", id="nothing"),
        pytest.param({}, FINDING, 1, "finding 1: a stays\n", id="a finding"),
        pytest.param(
            {"problem": "it exited"}, None, 1, "the plan could not be run: it exited\n", id="no run"
        ),
        pytest.param({"is_applied": False}, None, 1, "the plan did not take place: ", id="not applied"),
        pytest.param({"is_applied": False}, FINDING, 1, "the plan did not take place: ", id="both"),
    ],
)
def test_replay_succeeds_only_if_the_plan_took_place(fields, finding, code, text, capsys):
    trace = Trace(clock=InstantClock(), operator="operator", objects={})
    assert explore.print_replay(RunOutcome(plan=UNDISTURBED, trace=trace, **fields), finding) == code
    printed = capsys.readouterr().out
    assert printed.startswith(text)
    assert ("nothing is wrong" in printed) == (code == 0)


@pytest.mark.parametrize(
    ("progress", "at_terminal", "elsewhere"),
    [
        pytest.param(LearningProgress(done=2, total=5), "\r\x1b[K2 of 5 undisturbed runs", "", id="learning"),
        pytest.param(
            LearningProgress(done=5, total=5, writes=6, seconds=1.25),
            "\r\x1b[Kmockube: 6 writes were learned from undisturbed runs, in 1.2 s\n",
            "mockube: 6 writes were learned from undisturbed runs, in 1.2 s\n",
            id="learned",
        ),
        pytest.param(
            PlanProgress(done=7, total=200, findings=1), "\r\x1b[K7 of 200 plans, 1 finding", "", id="plans"
        ),
        pytest.param(SuspicionProgress(finding=SUSPECTED), f"\r\x1b[K{SUSPICION}", SUSPICION, id="suspicion"),
        pytest.param(
            SuspicionProgress(finding=SUSPECTED, is_repaired=True),
            "\r\x1b[Kmockube: the operator repairs it later: a stays\n",
            "mockube: the operator repairs it later: a stays\n",
            id="repaired",
        ),
    ],
)
def test_progress_is_one_line_at_a_terminal(progress, at_terminal, elsewhere, capsys, monkeypatch):
    for is_terminal, text in ((True, at_terminal), (False, elsewhere)):
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal)
        explore.print_progress(progress)
        assert capsys.readouterr().err == text


def test_finding_that_cannot_be_written_is_named_with_its_file(tmp_path, capsys):
    (tmp_path / "folder").write_text("a file")
    output = explore._Output(
        FindingFolder(tmp_path / "folder", ExplorationCall(scenario=None, command=(), seed=0), "pytest")
    )
    with pytest.raises(Failure, match="folder: "):
        output.add(FINDING)
    assert capsys.readouterr().err == f"mockube: a finding cannot be written: {FINDING.problems[0].text}\n"


def test_folder_that_cannot_be_made_is_refused(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match=r"--output: .*file.*: Not a directory"):
        explore._make_folder(file / "findings")
    with pytest.raises(UsageError, match="--output: "):
        explore._make_folder(Path("/proc/mockube"))
    explore._make_folder(tmp_path / "a/b")
    assert (tmp_path / "a/b").is_dir()
