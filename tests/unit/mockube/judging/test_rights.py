"""The judgement rights: what the other judgements have used of what the roles allow."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mockube.judging.findings import Judgement
from mockube.judging.inputs import Account
from mockube.judging.reference import make_reference
from mockube.judging.rights import judge
from tests.support.scripted_operator import WEBSITE, ScriptedContext, scripted_trial

ADVICE: Any = {
    "requests": 3,
    "refused": [{"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"], "namespace": "web"}],
    "unused": [
        {
            "binding": 'ClusterRoleBinding "web"',
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        }
    ],
}


@pytest.mark.parametrize(
    ("objects", "left_out", "rules"),
    [
        pytest.param([WEBSITE], ["growth"], ["right-missing", "right-unused"], id="it has worked"),
        pytest.param([], [], ["right-missing"], id="it wrote nothing"),
        pytest.param(None, [], ["right-missing"], id="it never came to rest"),
        pytest.param([WEBSITE], ["deletions"], ["right-missing"], id="it deleted nothing"),
    ],
)
def test_unused_rights_are_findings_if_the_operator_has_worked(
    objects: list[Any] | None, left_out: list[str], rules: list[str], tmp_path: Path
) -> None:
    setup = replace(scripted_trial(tmp_path).setup, account=Account(namespace="web", name="operator"))
    reference = None if objects is None else make_reference([objects] * 2, 1.0)
    context = ScriptedContext(
        setup=setup, trials=[], reference=reference, advices=[ADVICE], left_out=left_out
    )
    judgement = Judgement(name="rights", question="?")
    judge(context, judgement)
    assert [each.rule for each in judgement.findings] == rules
    assert (judgement.figures["missing"], judgement.figures["requests"]) == ("1", "3")
    assert judgement.figures["unused"] == ("1" if "right-unused" in rules else "not judged")
    assert any("`deletions`" in line for line in judgement.did) is ("deletions" in left_out)
