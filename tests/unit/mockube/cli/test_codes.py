"""With what the command ends."""

import signal

import pytest

from mockube.cli.output import code_of, signalled
from mockube.clusters.lock import Held
from mockube.failure import Failure, Missing, Misused, TimedOut


@pytest.mark.parametrize(
    ("failure", "code"), [(Failure, 1), (Held, 1), (Misused, 2), (Missing, 3), (TimedOut, 4)]
)
def test_a_failure_has_the_code_of_its_kind(failure, code):
    assert code_of(failure("why")) == code


def test_a_signal_is_told_as_shells_tell_it():
    assert signalled(signal.SIGINT) == 130
