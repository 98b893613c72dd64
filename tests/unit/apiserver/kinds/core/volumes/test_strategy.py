"""The phase transition time of volumes, and the data source fields of claims."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from tests.support.server.requests import NOW_TEXT, request

VOLUMES = NEWEST.strategies[GroupResource("", "persistentvolumes")]
CLAIMS = NEWEST.strategies[GroupResource("", "persistentvolumeclaims")]
EARLIER = "2029-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"phase": "Bound"}, NOW_TEXT, id="a new phase"),
        pytest.param(
            {"phase": "Bound", "lastPhaseTransitionTime": EARLIER}, NOW_TEXT, id="with the old time"
        ),
        pytest.param(
            {"phase": "Bound", "lastPhaseTransitionTime": "2031-01-01T00:00:00Z"},
            "2031-01-01T00:00:00Z",
            id="with a time of the client's",
        ),
        pytest.param({"phase": "Pending", "lastPhaseTransitionTime": EARLIER}, EARLIER, id="the same phase"),
    ],
)
def test_phase_transition_time_changes_with_phase(status, expected):
    new, old = {"status": status}, {"status": {"phase": "Pending", "lastPhaseTransitionTime": EARLIER}}
    VOLUMES.prepare_update["status"](new, old, request())
    assert new["status"]["lastPhaseTransitionTime"] == expected


SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
OTHER = {"apiGroup": "example.com", "kind": "Thing", "name": "t"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="no source"),
        pytest.param(
            {"dataSource": SNAPSHOT}, {"dataSource": SNAPSHOT, "dataSourceRef": SNAPSHOT}, id="the old field"
        ),
        pytest.param(
            {"dataSourceRef": OTHER}, {"dataSource": OTHER, "dataSourceRef": OTHER}, id="the new field"
        ),
        pytest.param({"dataSource": OTHER}, {}, id="unsupported kind in the old field"),
        pytest.param(
            {"dataSourceRef": OTHER | {"namespace": "n"}},
            {},
            id="of another namespace",
        ),
    ],
)
def test_data_source_of_new_claim_is_normalised(spec, expected):
    claim = {"spec": spec}
    CLAIMS.prepare_create(claim, request())
    assert claim == {"spec": expected, "status": {"phase": "Pending"}}


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param({}, {}, id="no source before"),
        pytest.param(
            {"dataSource": SNAPSHOT, "dataSourceRef": SNAPSHOT},
            {"dataSource": OTHER, "dataSourceRef": OTHER},
            id="another source before, which the rules compare",
        ),
    ],
)
def test_unsupported_source_of_updated_claim_is_dropped_if_it_had_none(old, expected):
    claim = {"spec": {"dataSource": OTHER}}
    CLAIMS.prepare_update[""](claim, {"spec": old}, request())
    assert claim["spec"] == expected
