"""Fixtures: a stepped clock, and objects that use it."""

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.controller_manager.metrics.queues import Metrics


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def metrics(clock):
    return Metrics(clock)


@pytest.fixture
def came():
    """Whatever comes, with its time."""
    return []
