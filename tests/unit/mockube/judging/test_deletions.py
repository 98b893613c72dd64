"""The judgement deletions: what stays when a custom resource is gone."""

from pathlib import Path

import pytest

from mockube.judging import deletions
from mockube.judging.findings import Judgement, Level
from mockube.judging.reference import make_reference
from tests.support.scripted_operator import GROUP, ScriptedContext, ScriptedTrial, scripted_trial

ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "blog"}}


@pytest.mark.parametrize(("looks", "levels"), [(5, []), (10_000, [Level.ERROR])])
def test_operator_has_time_to_delete_what_stays_after_a_namespace(
    looks: int, levels: list[Level], tmp_path: Path
) -> None:
    left = [looks]

    def work(trial: ScriptedTrial) -> None:
        script = trial.script
        script.record(trial.user, "get", "websites", group=GROUP)
        if ("Website", "blog") in script.objects and not script.made:
            script.record(trial.user, "create", "clusterroles")
            script.make(trial.user, ROLE)
        if script.made and ("Namespace", "to-be-deleted") not in script.objects:
            left[0] -= 1
            if not left[0]:
                script.delete("ClusterRole", "blog")

    trial = scripted_trial(tmp_path, work)
    judgement = Judgement(name="deletions", question="?")
    reference = make_reference([[ROLE]] * 2, 1.0)
    context = ScriptedContext(setup=trial.setup, reference=reference, trials=[])
    deletions._delete_namespace(context, judgement, trial)
    assert [each.level for each in judgement.findings] == levels
