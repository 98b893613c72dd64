"""Which requests of an operator are writes that count."""

import pytest

from mockube.operators.writes import is_write


@pytest.mark.parametrize(
    ("verb", "resource", "counts"),
    [
        ("create", "configmaps", True),
        ("patch", "websites.example.com/status", True),
        ("update", "nodes", True),
        ("create", "events.example.com", True),
        ("get", "configmaps", False),
        ("create", "events", False),
        ("patch", "events.events.k8s.io", False),
        ("update", "leases.coordination.k8s.io", False),
        ("create", "localsubjectaccessreviews.authorization.k8s.io", False),
        ("create", "serviceaccounts/token", False),
        ("create", "tokenreviews.authentication.k8s.io", False),
        ("create", "marks.control.mockube.dev", False),
        ("update", "configmaps/token", True),
        ("delete", "configmaps", True),
        ("deletecollection", "configmaps", True),
        ("watch", "configmaps", False),
        ("create", "serviceaccounts", True),
    ],
)
def test_write_counts_if_it_changes_an_object_of_the_operator(
    verb: str, resource: str, *, counts: bool
) -> None:
    assert is_write(verb, resource) is counts
