"""What `mockube log` says of the history that is left."""

import pytest

from mockube.cli.log import gap_before
from mockube.history.versions import Version


@pytest.mark.parametrize(("type_", "has_gap"), [("ADDED", False), ("MODIFIED", True), ("DELETED", True)])
def test_history_without_the_creation_of_an_object_is_incomplete(type_, has_gap):
    versions = [Version(revision=7, type=type_, before=None, after=None)]
    assert bool(gap_before(versions)) is has_gap
