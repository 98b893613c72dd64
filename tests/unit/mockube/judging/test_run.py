"""One judgement that goes wrong does not end the others, and the end of the test ends all."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from mockube.apimachinery.schema import minors
from mockube.client.wire import NoResponse
from mockube.cluster import Cluster
from mockube.component_base.clock import RealClock
from mockube.failure import UsageError
from mockube.judging import rights, run
from mockube.judging.context import Context
from mockube.judging.findings import Judgement, Verdict
from mockube.judging.inputs import Account, Release, Sample, read_release
from mockube.judging.trial_cluster import Interrupted, Setup, TrialCluster
from mockube.lint.renderers import ChartOptions

CHART = ChartOptions(release="mine", namespace="default", flags=[])
DEFINITION: Any = {"metadata": {"name": "w"}, "spec": {"group": "a", "names": {"plural": "w", "kind": "W"}}}
SAMPLE = Sample(resource={"metadata": {"name": "w"}}, others=[], definition=DEFINITION, names=["sample.yaml"])


def _context() -> Context:
    release = Release(names=["deploy.yaml"], objects={minors.NEWEST: []}, command=["true"], chart=CHART)
    return Context(setup=Setup(release=release, sample=SAMPLE, namespace="default", clock=RealClock()))


def _replace(monkeypatch: pytest.MonkeyPatch, **judges: Callable[[Context, Judgement], None]) -> None:
    chosen = [run.Judge(name=name, question="?", judge=judge) for name, judge in judges.items()]
    monkeypatch.setattr(run, "JUDGES", chosen)


@pytest.mark.parametrize(
    ("error", "message"),
    [(NoResponse("no answer"), "could not be made: no answer"), (KeyError("spec"), "KeyError: 'spec'")],
)
def test_error_of_one_judgement_is_its_finding(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(context: Context, judgement: Judgement) -> None:
        raise error

    _replace(monkeypatch, install=lambda *_: None, drift=fail, updates=lambda *_: None)
    install, drift, updates = run.judge_all(_context(), ["drift", "updates"])
    assert (install.outcome, drift.outcome, updates.outcome) == (
        Verdict.PASSED,
        Verdict.FAILED,
        Verdict.PASSED,
    )
    (finding,) = drift.findings
    assert finding.rule == "not-judged"
    assert message in finding.message


def test_first_judgement_that_fails_is_no_state_that_the_operator_did_not_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(context: Context, judgement: Judgement) -> None:
        raise TimeoutError("the cluster was not ready")

    def compare(context: Context, judgement: Judgement) -> None:
        context.require_reference()

    _replace(monkeypatch, install=fail, drift=compare)
    install, drift = run.judge_all(_context(), ["drift"])
    assert install.findings[0].rule == "not-judged"
    assert drift.reason == "`install`, with whose state it compares, could not be made"


def test_unused_rights_are_not_judged_of_an_operator_that_did_not_do_its_work() -> None:
    context = _context()
    context.setup = replace(context.setup, account=Account(namespace="a", name="manager"))
    rule: Any = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    unused = [{"binding": "b", "rules": [rule]}]
    context.advices = [{"requests": 12, "refused": [rule], "unused": unused}]
    judgement = Judgement(name="rights", question="?")
    rights.judge(context, judgement)
    assert [finding.rule for finding in judgement.findings] == ["right-missing"]


def test_end_of_the_test_ends_trials_that_wait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    context = _context()
    waits, ended = threading.Event(), threading.Event()

    def wait(context: Context, judgement: Judgement) -> None:
        trial = TrialCluster(context.setup, cast("Cluster", None), context.setup.release, "", tmp_path)
        waits.set()
        try:
            trial.pause(600)
        except Interrupted:
            ended.set()
            raise

    def interrupt(context: Context, judgement: Judgement) -> None:
        assert waits.wait(30)
        raise KeyboardInterrupt

    _replace(monkeypatch, install=lambda *_: None, drift=interrupt, updates=wait)
    with pytest.raises(KeyboardInterrupt):
        run.judge_all(context, ["drift", "updates"], jobs=2)
    assert ended.is_set()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}",
            "Object missing required field `spec`",
        ),
        (
            (
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
                "spec: {template: {spec: {containers: [{env: [{value: b}]}]}}}"
            ),
            "spec.template.spec.containers[0].env[0]: Object missing required field `name`",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: text}",
            "spec.template: Expected `object | null`, got `str`",
        ),
    ],
)
def test_manifest_with_another_type_is_refused_when_it_is_read(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read_release([str(file)], [minors.NEWEST], CHART, command=["true"])
    assert str(error.value).endswith(message)
