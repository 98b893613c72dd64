import ast
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from mockube.exploration.exploration import Exploration
from mockube.exploration.finding_files import FindingFolder, remove_findings
from mockube.exploration.findings import ExplorationCall, OperatorFinding, read_finding
from mockube.exploration.judgements import OperatorProblem
from mockube.exploration.plans import Disturbance, plan_of
from mockube.exploration.run_recording import runs_by_name
from mockube.report.recording import RecordedRun
from tests.support.reports import changes_to, recording, tree_of

FINDING = OperatorFinding(
    plan=plan_of([Disturbance(action="restart", step=0)]),
    problems=[OperatorProblem(type="end", text="ConfigMap a is left over", key=("end",))],
    history=["  0.10 s  step 1: apply"],
    confirmed=3,
    repetitions=3,
)
CALL = ExplorationCall(scenario=Path("s.yaml"), command=["./manager"])


def run(*revisions):
    changes = changes_to("Pod", "web", tree_of("Pod", "web"))
    return RecordedRun(recording=recording(changes=changes), revisions=revisions)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_of_a_finding_and_their_index(tmp_path):
    folder = FindingFolder(tmp_path / "a/findings", CALL)
    finding = replace(FINDING, runs=runs_by_name(run(1), run(1)), log="it crashes\n")
    folder.add(finding)
    folder.end(Exploration(findings=[finding], runs=7, seconds=1.5))
    assert names(tmp_path / "a/findings") == [
        "finding-1.html",
        "finding-1.log",
        "finding-1.yaml",
        "findings.json",
        "test_finding_1.py",
    ]
    index = orjson.loads((tmp_path / "a/findings/findings.json").read_bytes())
    assert (index["plans"], index["seconds"]) == (7, 1.5)
    (listed,) = index["findings"]
    assert listed["problems"] == ["ConfigMap a is left over"]
    assert listed["when"] == ["the operator restarts, after step 1"]
    assert listed["plan"] == [{"action": "restart", "step": 0}]
    assert (listed["file"], listed["report"]) == ("finding-1.yaml", "finding-1.html")
    assert (tmp_path / "a/findings" / listed["log"]).read_text() == "it crashes\n"
    assert folder.paths[0].lines()[0] == (
        "replay it: mockube explore --replay",
        tmp_path / "a/findings/finding-1.yaml",
    )


@pytest.mark.parametrize(
    ("undisturbed", "disturbed", "plan", "is_written"),
    [
        pytest.param(run(1), run(1), FINDING.plan, True, id="both"),
        pytest.param(run(1), None, FINDING.plan, False, id="the disturbed one was not recorded"),
        pytest.param(run(1), None, plan_of([]), True, id="nothing is disturbed"),
        pytest.param(None, None, FINDING.plan, False, id="none"),
    ],
)
def test_page_needs_the_recordings_of_all_runs(undisturbed, disturbed, plan, is_written, tmp_path):
    FindingFolder(tmp_path, CALL).add(replace(FINDING, plan=plan, runs=runs_by_name(undisturbed, disturbed)))
    assert (tmp_path / "finding-1.html").exists() == is_written


def test_index_says_that_there_is_no_finding(tmp_path):
    FindingFolder(tmp_path, CALL).add(FINDING)
    FindingFolder(tmp_path, CALL).end(Exploration(runs=3))
    assert names(tmp_path) == ["findings.json"]
    assert orjson.loads((tmp_path / "findings.json").read_bytes())["findings"] == []


def test_files_of_an_earlier_exploration_are_removed_and_no_others(tmp_path):
    folder = FindingFolder(tmp_path, CALL, "go")
    for _ in range(2):
        folder.add(replace(FINDING, runs=runs_by_name(run(), run()), log="it crashes"))
    folder.end(Exploration(findings=[FINDING, FINDING]))
    own = {"finding-own.yaml": "kind: Pod", "test_finding_1.py": "# mine", "finding_2_test.go": "// mine"}
    for name, text in own.items():
        (tmp_path / name).write_text(text)
    remove_findings(tmp_path)
    remove_findings(tmp_path / "none")
    assert names(tmp_path) == sorted(own)


def test_test_of_pytest_replays_the_finding_with_the_function(tmp_path):
    call = ExplorationCall(scenario=Path("s.yaml"), function="databases:run_operator")
    FindingFolder(tmp_path, call).add(FINDING)
    text = (tmp_path / "test_finding_1.py").read_text()
    ast.parse(text)
    assert "import mockube\nimport pytest\nfrom databases import run_operator\n" in text
    assert 'with_name("finding-1.yaml"), main=run_operator)' in text
    assert "# ConfigMap a is left over\n# when the operator restarts, after step 1\n" in text
    assert read_finding(tmp_path / "finding-1.yaml").command == []


@pytest.mark.parametrize(("language", "name"), [("pytest", "test_finding_1.py"), ("go", "finding_1_test.go")])
def test_text_of_a_problem_stays_in_the_comment_of_a_test(language, name, tmp_path):
    problem = OperatorProblem(type="exits", text="a\nimport os\r\x1b[31m", key=("exits",))
    FindingFolder(tmp_path, CALL, language).add(replace(FINDING, problems=[problem]))
    lines = (tmp_path / name).read_text().splitlines()
    assert lines[0].endswith("Written by mockube explore: this test fails while the finding is there.")
    assert lines[2].startswith(("# a", "// a"))
    assert "import os" not in lines
