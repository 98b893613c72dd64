"""The judgement install: what is found when an operator runs undisturbed."""

from pathlib import Path

import pytest

from mockube.judging import install
from mockube.judging.context import NotApplicable
from mockube.judging.findings import Judgement, Level
from tests.support.scripted_operator import GROUP, ScriptedContext, ScriptedTrial, scripted_trial


def _context(*trials: ScriptedTrial) -> ScriptedContext:
    return ScriptedContext(setup=trials[0].setup, trials=[*trials])


def _judgement() -> Judgement:
    return Judgement(name="install", question="?")


def test_operator_that_runs_and_sends_nothing_is_an_error(tmp_path: Path) -> None:
    context, judgement = _context(scripted_trial(tmp_path)), _judgement()
    with pytest.raises(NotApplicable):
        install.judge(context, judgement)
    (finding,) = judgement.findings
    assert (finding.rule, finding.level, finding.subject) == ("nothing-done", Level.ERROR, "The operator")
    assert finding.details == ["the last line"]
    assert context.reference is None


def test_operator_that_ends_in_both_runs_is_found_once(tmp_path: Path) -> None:
    def end_once(trial: ScriptedTrial) -> None:
        trial.script.record(trial.user, "get", "websites", group=GROUP)
        if not trial.exits:
            for instance in trial.instances:
                instance.code = 3  # type: ignore[misc] - a scripted one

    judgement = _judgement()
    install.judge(_context(*(scripted_trial(tmp_path, end_once) for _ in range(2))), judgement)
    assert [each.rule for each in judgement.findings if each.level is Level.ERROR] == ["operator-exits"]


def test_operator_that_ends_in_the_second_run_only_is_found(tmp_path: Path) -> None:
    def read(trial: ScriptedTrial) -> None:
        trial.script.record(trial.user, "get", "websites", group=GROUP)

    def end_late(trial: ScriptedTrial) -> None:
        read(trial)
        if ("Website", "blog") in trial.script.objects and not trial.exits:
            for instance in trial.instances:
                instance.code = 3  # type: ignore[misc] - a scripted one

    judgement = _judgement()
    install.judge(_context(scripted_trial(tmp_path, read), scripted_trial(tmp_path, end_late)), judgement)
    assert "operator-exits" in [each.rule for each in judgement.findings]


def test_operator_that_writes_forever_has_no_state_to_compare_with(tmp_path: Path) -> None:
    def beat(trial: ScriptedTrial) -> None:
        trial.script.record(trial.user, "get", "websites", group=GROUP)
        if ("Website", "blog") in trial.script.objects:
            trial.script.record(trial.user, "patch", "websites", group=GROUP, subresource="status")

    context, judgement = _context(scripted_trial(tmp_path, beat)), _judgement()
    install.judge(context, judgement)
    assert [each.rule for each in judgement.findings] == ["never-settles"]
    with pytest.raises(NotApplicable, match="reached no state at rest"):
        context.require_reference()


@pytest.mark.parametrize(
    ("log", "is_hinted"),
    [
        pytest.param(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and", True, id="in a pod"
        ),
        pytest.param("panic: runtime error", False, id="another reason"),
    ],
)
def test_operator_that_looks_for_the_files_of_a_pod_gets_a_hint(*, log: str, is_hinted: bool) -> None:
    assert ("has to read KUBECONFIG" in install._exit_hint(log)) is is_hinted
