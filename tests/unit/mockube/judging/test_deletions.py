"""The judgement deletions: what stays when a custom resource is gone."""

from pathlib import Path
from typing import Any

import pytest

from mockube.judging import deletions
from mockube.judging.findings import Judgement, Level
from mockube.judging.reference import make_reference, own_part
from mockube.judging.trial_cluster import TrialCluster
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


OWNED: Any = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "blog",
        "namespace": "default",
        "ownerReferences": [{"uid": "1", "kind": "Website"}],
    },
}
ADOPTED = own_part(OWNED, GROUP)


@pytest.mark.parametrize(
    ("objects", "deletes", "adopts", "rules", "kept"),
    [
        pytest.param([OWNED], False, True, [], "1 of 1", id="kept and adopted"),
        pytest.param([OWNED], True, True, ["orphan-deleted"], "0 of 1", id="deleted, and made again"),
        pytest.param([OWNED], False, False, ["orphan-not-adopted"], "1 of 1", id="not adopted"),
        pytest.param([ROLE], False, False, [], None, id="no owner"),
    ],
)
def test_orphans_are_kept_and_adopted(
    *, objects: list[Any], deletes: bool, adopts: bool, rules: list[str], kept: str | None, tmp_path: Path
) -> None:
    def work(trial: ScriptedTrial) -> None:
        is_back = was_deleted and ("Website", "blog") in trial.script.objects
        if is_back and adopts:
            trial.script.objects["Deployment", "blog"] = OWNED

    was_deleted: list[bool] = []

    def delete(trial: TrialCluster) -> None:
        script: Any = trial.cluster
        script.delete("Website", "blog")
        without_owner = {**OWNED["metadata"], "ownerReferences": []}
        script.objects["Deployment", "blog"] = {**OWNED, "metadata": without_owner}
        if deletes:
            script.delete("Deployment", "blog")
        was_deleted.append(True)

    trial = scripted_trial(tmp_path, work)
    trial.create_resource()
    for tree in objects:
        trial.script.make(trial.user, tree)
    judgement = Judgement(name="deletions", question="?")
    reference = make_reference([[ADOPTED]] * 2, 1.0)
    context = ScriptedContext(setup=trial.setup, reference=reference, trials=[])
    deletions.delete_without_orphans(context, judgement, trial, delete)
    assert [each.rule for each in judgement.findings] == rules
    assert judgement.figures.get("orphans kept") == kept
