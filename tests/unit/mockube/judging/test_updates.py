"""The judgement updates: what an operator does when a field changes, and changes back."""

from pathlib import Path

import pytest

from mockube.apimachinery.tree import Tree
from mockube.judging import updates
from mockube.judging.field_values import FieldUpdate
from mockube.judging.findings import Judgement, Level
from mockube.judging.reference import make_reference
from tests.support.scripted_operator import (
    WEBSITE,
    ScriptedContext,
    ScriptedTrial,
    scripted_trial,
)

COLOR = FieldUpdate(path=("spec", "color"), before="red", after="blue")


class CopyingOperator:
    """Writes the color of the website into a ConfigMap, so many looks after a change; it ends if the color is another one."""

    def __init__(self, delay_looks: int, *, ends: bool = False) -> None:
        self._delay_looks, self._ends = delay_looks, ends
        self._seen = "red"
        self._looks = 0

    def __call__(self, trial: ScriptedTrial) -> None:
        script = trial.script
        color = script.objects["Website", "blog"]["spec"]["color"]
        self._looks = self._looks + 1 if color != self._seen else 0
        if self._ends and color != "red":
            for instance in trial.instances:
                instance.code = 2  # type: ignore[misc] - a scripted one
        elif self._looks > self._delay_looks:
            self._seen = color
            script.record(trial.user, "patch", "configmaps")
            script.make(trial.user, _config(color))


class ApplyingOperator(CopyingOperator):
    """Sends the same object after each change, which changes nothing."""

    def __call__(self, trial: ScriptedTrial) -> None:
        color = trial.script.objects["Website", "blog"]["spec"]["color"]
        if color != self._seen:
            self._seen = color
            trial.script.record(trial.user, "patch", "configmaps")


def _config(color: str) -> Tree:
    metadata = {"name": "blog", "namespace": "default", "annotations": {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": color}}


def _try(folder: Path, operator: CopyingOperator, times: int = 1) -> tuple[Judgement, ScriptedTrial]:
    trial = scripted_trial(folder, operator)
    trial.start()
    trial.script.objects["Website", "blog"] = {**WEBSITE, "spec": {"color": "red"}}
    trial.script.make(trial.user, _config("red"))
    judgement = Judgement(name="updates", question="?")
    context = ScriptedContext(
        setup=trial.setup, reference=make_reference([[_config("red")]] * 2, 1.0), trials=[]
    )
    for _ in range(times):
        updates._try(context, judgement, trial, COLOR, [])
    return judgement, trial


@pytest.mark.parametrize(("looks", "rules"), [(30, []), (10_000, ["update-without-effect"])])
def test_operator_has_time_to_react_to_a_field(looks: int, rules: list[str], tmp_path: Path) -> None:
    judgement, _ = _try(tmp_path, CopyingOperator(looks))
    assert [each.rule for each in judgement.findings] == rules


def test_write_that_changes_nothing_is_no_effect_of_a_field(tmp_path: Path) -> None:
    judgement, _ = _try(tmp_path, ApplyingOperator(0))
    assert [each.rule for each in judgement.findings] == ["update-without-effect"]


def test_operator_that_ends_for_a_value_runs_again_for_the_next_field(tmp_path: Path) -> None:
    judgement, trial = _try(tmp_path, CopyingOperator(0, ends=True), times=3)
    assert {each.rule for each in judgement.findings} == {"update-ends-operator"}
    assert trial.is_running()


class RefusedOperator(CopyingOperator):
    """Tries to write after each change, and may not: its status is that of the generation before."""

    def __call__(self, trial: ScriptedTrial) -> None:
        website = trial.script.objects["Website", "blog"]
        color = website["spec"]["color"]
        website["metadata"] = {**website["metadata"], "generation": 1 if color == "red" else 2}
        website["status"] = {"observedGeneration": 1}
        if color != self._seen:
            self._seen = color
            trial.script.record(trial.user, "create", "configmaps", code=403)


def test_write_that_is_refused_is_no_effect_of_a_field(tmp_path: Path) -> None:
    judgement, _ = _try(tmp_path, RefusedOperator(0))
    (finding,) = judgement.findings
    assert (finding.rule, finding.level) == ("update-without-effect", Level.WARNING)
    assert "403" in finding.details[0]


class ForgetfulOperator(CopyingOperator):
    """Follows only what changes while it runs."""

    def __call__(self, trial: ScriptedTrial) -> None:
        if not any(each.restarts for each in trial.instances):  # type: ignore[attr-defined] - a scripted one
            super().__call__(trial)


@pytest.mark.parametrize(
    ("operator", "rules"),
    [
        pytest.param(CopyingOperator(0), [], id="it reads what there is"),
        pytest.param(ForgetfulOperator(0), ["update-lost-while-down"], id="it waits for changes"),
    ],
)
def test_change_while_the_operator_is_stopped(
    operator: CopyingOperator, rules: list[str], tmp_path: Path
) -> None:
    trial = scripted_trial(tmp_path, operator)
    trial.start()
    trial.script.objects["Website", "blog"] = {**WEBSITE, "spec": {"color": "red"}}
    trial.script.make(trial.user, _config("red"))
    judgement = Judgement(name="updates", question="?")
    reference = make_reference([[_config("red")]] * 2, 1.0)
    context = ScriptedContext(setup=trial.setup, reference=reference, trials=[])
    state = updates._try(context, judgement, trial, COLOR, [])
    assert state is not None
    updates._change_while_down(context, judgement, trial, COLOR, state)
    assert [each.rule for each in judgement.findings] == rules
