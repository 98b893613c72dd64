"""Fixtures: a stepped clock, metrics on that clock, and a list of recorded events."""

import pytest

from mockube.client.metrics.process import Metrics
from mockube.component_base.clock import SteppedClock


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def metrics(clock):
    return Metrics(clock)


@pytest.fixture
def added_keys():
    """A list in which tests record events with their times."""
    return []
