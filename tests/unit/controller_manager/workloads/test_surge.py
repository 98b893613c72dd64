import pytest

from mockube.controller_manager.workloads.rolling import fenceposts


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        pytest.param("25%", "25%", 10, (3, 2), id="surge up, unavailable down"),
        pytest.param("25%", "25%", 1, (1, 0), id="one pod is replaced by surge"),
        pytest.param("39%", "39%", 10, (4, 3), id="not to the nearest"),
        pytest.param("0%", "10%", 1, (0, 1), id="both round to zero"),
        pytest.param(0, 0, 5, (0, 1), id="both zero"),
        pytest.param("100%", 0, 7, (7, 0), id="all at once"),
        pytest.param(2, "50%", 3, (2, 1), id="a number and a share"),
        pytest.param(None, None, 3, (0, 1), id="both unset"),
        pytest.param("25%", "25%", 0, (0, 1), id="of none"),
    ],
)
def test_fenceposts_are_resolved(surge, unavailable, replicas, expected):
    assert fenceposts(surge, unavailable, replicas) == expected
