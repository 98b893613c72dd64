"""The judgement upgrade: the sample of the new version in a cluster of the version before."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.judging import upgrade
from mockube.judging.context import NotApplicable
from mockube.judging.findings import Judgement
from mockube.judging.reference import make_reference, own_part
from mockube.objects.errors import KindNotServed
from tests.support.scripted_operator import GROUP, ScriptedContext, ScriptedTrial, scripted_trial


def _deployment(name: str) -> Any:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {}},
    }


def _judge(trial: ScriptedTrial, *objects: Any) -> Judgement:
    trial.setup = replace(trial.setup, previous=trial.release)
    reference = make_reference([[own_part(tree, GROUP) for tree in objects]] * 2, 1.0)
    judgement = Judgement(name="upgrade", question="?")
    upgrade.judge(ScriptedContext(setup=trial.setup, reference=reference, trials=[trial]), judgement)
    return judgement


def test_sample_that_the_version_before_does_not_serve_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = scripted_trial(tmp_path)

    def refuse(tree: Any, **_: Any) -> Any:
        raise KindNotServed(f"the server does not serve {meta.api_version(tree)}")

    monkeypatch.setattr(trial.script, "create", refuse)
    with pytest.raises(NotApplicable, match=r"the version before refuses the sample: .* example.com/v1"):
        _judge(trial, _deployment("web"))


def test_pods_are_restarted_by_an_upgrade_only_if_the_new_version_changes_their_template(
    tmp_path: Path,
) -> None:
    first, second = _deployment("first"), _deployment("second")

    def work(trial: ScriptedTrial) -> None:
        script = trial.script
        script.record(trial.user, "get", "websites", group=GROUP)
        if ("Website", "blog") not in script.objects:
            return
        if not script.made:
            script.make(trial.user, first)
            script.make(trial.user, second)
            script.change(trial.user, first, "/spec/template/metadata/labels")
        elif len(trial.instances) == 2 and len(script.made) == 3:
            script.change(trial.user, second, "/spec/template/metadata/labels")

    judgement = _judge(scripted_trial(tmp_path, work), first, second)
    assert judgement.findings == []
    assert judgement.figures["pods restarted of"] == "Deployment second"
