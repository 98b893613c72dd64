"""Who counts as a part of the cluster."""

import pytest

from mockube.explanations.facts import is_component


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("system:kube-controller-manager", True),
        ("system:node:node-1", True),
        ("system:serviceaccount:kube-system:job-controller", True),
        ("system:serviceaccount:shop:operator", False),
        ("system:anonymous", False),
        ("alice", False),
        ("", False),
    ],
)
def test_component_is_no_user_of_the_cluster(user, expected):
    assert is_component(user) is expected
