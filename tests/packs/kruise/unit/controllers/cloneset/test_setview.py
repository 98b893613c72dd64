import pytest

from mockube.packs.kruise.controllers.cloneset.spec import CloneSetView
from tests.packs.kruise.support.clonesets import cloneset


def set_view(labels=None, **spec):
    found = cloneset(**spec)
    return CloneSetView.of({**found, "metadata": {**found["metadata"], "labels": labels or {}}})


def limits(replicas, **strategy):
    found = set_view(replicas=replicas, updateStrategy=strategy).limits
    return found.max_unavailable, found.max_surge


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({}, (1, 0), id="a fifth, rounded up"),
        pytest.param({"maxUnavailable": "40%", "maxSurge": "30%"}, (2, 2), id="surge is rounded up"),
        pytest.param(
            {"maxUnavailable": "50%", "maxSurge": 1}, (2, 1), id="with surge the rest is rounded down"
        ),
        pytest.param({"maxUnavailable": "50%"}, (3, 0), id="maxUnavailable is rounded up without surge"),
        pytest.param({"maxUnavailable": 0, "maxSurge": 1}, (0, 1), id="none at all"),
        pytest.param({"maxSurge": 3, "paused": True}, (1, 0), id="no surge while it is paused"),
        pytest.param({"maxUnavailable": "many", "maxSurge": "9"}, (0, 0), id="unparsable value"),
    ],
)
def test_limits_of_strategy(strategy, expected):
    assert limits(5, **strategy) == expected


def test_omitted_fields_have_defaults():
    found = set_view()
    assert (found.update_type, found.reuses_claims, found.min_ready_seconds) == ("ReCreate", True, 0)
    assert found.limits.scale_max_unavailable is None
    assert found.progress_deadline_seconds is None


def test_maximum_deadline_is_no_deadline():
    assert set_view(progressDeadlineSeconds=2**31 - 1).progress_deadline_seconds is None
    assert set_view(progressDeadlineSeconds=60).progress_deadline_seconds == 60


@pytest.mark.parametrize(
    ("labels", "scale", "expected"),
    [
        pytest.param({}, {}, False, id="by default"),
        pytest.param(
            {"apps.kruise.io/cloneset-scaling-exclude-preparing-delete": "true"}, {}, True, id="label"
        ),
        pytest.param({}, {"excludePreparingDelete": True}, True, id="field"),
    ],
)
def test_pods_preparing_delete_may_be_excluded(labels, scale, expected):
    assert set_view(labels, scaleStrategy=scale).limits.excludes_preparing_delete is expected
