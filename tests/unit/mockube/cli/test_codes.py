"""With what the command ends."""

import signal

import pytest

from mockube.cli.output import code_of, signal_exit_code
from mockube.clusters.lock import ClusterLocked
from mockube.failure import Failure, Missing, TimedOut, UsageError


@pytest.mark.parametrize(
    ("failure", "code"), [(Failure, 1), (ClusterLocked, 1), (UsageError, 2), (Missing, 3), (TimedOut, 4)]
)
def test_a_failure_has_the_code_of_its_kind(failure, code):
    assert code_of(failure("why")) == code


def test_a_signal_is_told_as_shells_tell_it():
    assert signal_exit_code(signal.SIGINT) == 130
