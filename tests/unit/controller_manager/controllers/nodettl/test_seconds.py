"""The TTL of kubelets' Secret and ConfigMap caches, by the number of nodes."""

import pytest

from mockube.controller_manager.controllers.nodettl.controller import seconds_for


@pytest.mark.parametrize(
    ("nodes", "current", "seconds"),
    [
        (1, None, 0),
        (100, None, 0),
        (101, None, 15),
        (101, 0, 15),
        (95, 15, 15),
        (89, 15, 0),
        (500, 15, 15),
        (501, 15, 30),
        (450, 30, 30),
        (449, 30, 15),
        (1001, None, 60),
        (2001, 60, 300),
        (1800, 300, 300),
        (1799, 300, 60),
        (50, 7, 0),
    ],
)
def test_ttl_boundaries_have_hysteresis(nodes, current, seconds):
    assert seconds_for(nodes, current) == seconds
