"""CloneSet: computes how many pods to create, delete and update."""

import pytest
from msgspec.structs import asdict

from mockube.packs.kruise.controllers.cloneset.diffs import Diffs, PodCounts, diffs
from mockube.packs.kruise.controllers.cloneset.spec import CloneSetLimits


def limits(replicas, partition, unavailable, surge, **more):
    defaults = {"scale_max_unavailable": None, "excludes_preparing_delete": False}
    return CloneSetLimits(
        replicas=replicas,
        partition=partition,
        max_unavailable=unavailable,
        max_surge=surge,
        **(defaults | more),
    )


def pods(active=0, **more):
    return PodCounts(active=active, **more)


def nonzero_fields(found):
    """Return the fields that are not empty or zero."""
    return {name: value for name, value in asdict(found).items() if value}


NONE = pods()


@pytest.mark.parametrize(
    ("wanted", "new", "old", "expected"),
    [
        pytest.param(
            limits(5, 0, 1, 0), NONE, NONE, {"scale_up": 5, "scale_up_limit": 5}, id="scale up from zero"
        ),
        pytest.param(limits(5, 0, 1, 0), pods(5), NONE, {}, id="steady state"),
        pytest.param(
            limits(5, 0, 1, 0), pods(5, to_delete=1), NONE, {"delete_ready_limit": 1}, id="one specified pod"
        ),
        pytest.param(
            limits(5, 0, 1, 0), pods(4), NONE, {"scale_up": 1, "scale_up_limit": 1}, id="one missing pod"
        ),
        pytest.param(
            limits(4, 0, 1, 0),
            pods(5, to_delete=2),
            NONE,
            {"delete_ready_limit": 2},
            id="one surplus pod, two specified",
        ),
        pytest.param(
            limits(5, 3, 1, 0), NONE, pods(5), {"update": 2, "update_max_unavailable": 1}, id="partition"
        ),
        pytest.param(
            limits(5, 3, 1, 0),
            pods(1),
            pods(4),
            {"update": 1, "update_max_unavailable": 1},
            id="partition half reached",
        ),
        pytest.param(limits(5, 3, 1, 0), pods(2), pods(3), {}, id="partition reached"),
        pytest.param(
            limits(5, 1, 1, 0),
            pods(3),
            pods(3),
            {
                "scale_down": 1,
                "scale_down_old": 2,
                "delete_ready_limit": 2,
                "update": 1,
                "update_max_unavailable": 2,
            },
            id="scale down during rollout",
        ),
        pytest.param(
            limits(5, 1, 2, 0),
            pods(2),
            pods(2),
            {"scale_up": 1, "scale_up_limit": 1, "update": 1, "update_max_unavailable": 1},
            id="scale up during rollout",
        ),
        pytest.param(
            limits(5, 0, 0, 1),
            pods(5, to_delete=1),
            NONE,
            {"scale_up": 1, "scale_up_limit": 1, "surge": 1},
            id="replacement of a specified pod",
        ),
        pytest.param(
            limits(5, 0, 0, 1),
            pods(6, to_delete=1, unavailable=1),
            NONE,
            {"surge": 1},
            id="replacement is not ready",
        ),
        pytest.param(
            limits(5, 0, 0, 1),
            pods(6, to_delete=1),
            NONE,
            {"surge": 1, "delete_ready_limit": 1},
            id="replacement is ready",
        ),
        pytest.param(
            limits(5, 3, 1, 1),
            NONE,
            pods(5),
            {"scale_up": 1, "scale_up_limit": 1, "surge": 1, "update": 2, "update_max_unavailable": 1},
            id="surge for an update",
        ),
        pytest.param(
            limits(5, 4, 2, 2),
            NONE,
            pods(5),
            {"scale_up": 1, "scale_up_limit": 1, "surge": 1, "update": 1, "update_max_unavailable": 2},
            id="surge is limited to outdated pods",
        ),
        pytest.param(limits(5, 4, 1, 0), pods(4), pods(1), {}, id="no pod returns to the old revision"),
        pytest.param(
            limits(5, 3, 1, 0),
            NONE,
            NONE,
            {"scale_up": 5, "scale_up_old": 3, "scale_up_limit": 5},
            id="new pods of both revisions",
        ),
        pytest.param(
            limits(5, 5, 0, 1),
            NONE,
            pods(5, to_delete=1),
            {"scale_up": 1, "scale_up_old": 1, "scale_up_limit": 1, "surge": 1, "surge_old": 1},
            id="replacement has the specified pod's revision",
        ),
        pytest.param(
            limits(5, 0, 1, 0, scale_max_unavailable=2),
            NONE,
            NONE,
            {"scale_up": 5, "scale_up_limit": 2},
            id="scaling up is limited",
        ),
        pytest.param(
            limits(6, 0, 2, 0, scale_max_unavailable=2),
            pods(3, unavailable=1),
            NONE,
            {"scale_up": 3, "scale_up_limit": 1},
            id="unavailable pods count for the limit",
        ),
        pytest.param(
            limits(6, 0, 2, 0, scale_max_unavailable=2),
            pods(3, unavailable=2),
            NONE,
            {"scale_up": 3},
            id="the limit is reached",
        ),
        pytest.param(
            limits(3, 0, 1, 0),
            pods(5, unavailable=5),
            NONE,
            {"scale_down": 2},
            id="no deletion while all pods are unavailable",
        ),
        pytest.param(
            limits(3, 0, 1, 0), pods(5), NONE, {"scale_down": 2, "delete_ready_limit": 3}, id="scale down"
        ),
        pytest.param(
            limits(3, 0, 1, 0),
            pods(2, preparing_delete=1),
            NONE,
            {},
            id="pod preparing delete counts",
        ),
        pytest.param(
            limits(3, 0, 1, 0, excludes_preparing_delete=True),
            pods(2, preparing_delete=1),
            NONE,
            {"scale_up": 1, "scale_up_limit": 1},
            id="pod preparing delete is excluded",
        ),
    ],
)
def test_diffs_of_replicas(wanted, new, old, expected):
    assert nonzero_fields(diffs(wanted, new, old)) == expected


def test_paused_set_scales_without_surge():
    assert nonzero_fields(diffs(limits(5, 0, 1, 0), NONE, pods(3))) == {
        "scale_up": 2,
        "scale_up_limit": 2,
        "update": 3,
    } | {"update_max_unavailable": -1}


def test_equal_numbers_have_no_diffs():
    assert diffs(limits(0, 0, 0, 0), NONE, NONE) == Diffs()
