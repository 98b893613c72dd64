"""Exit codes of the command."""

import signal

import pytest

from mockube.cli.output import code_of, signal_exit_code
from mockube.clusters.named_cluster import ClusterLocked
from mockube.failure import Failure, Missing, TimedOut, UsageError


@pytest.mark.parametrize(
    ("failure", "code"), [(Failure, 1), (ClusterLocked, 1), (UsageError, 2), (Missing, 3), (TimedOut, 4)]
)
def test_failure_has_exit_code_of_its_kind(failure, code):
    assert code_of(failure("why")) == code


def test_signal_has_shells_exit_code():
    assert signal_exit_code(signal.SIGINT) == 130
