"""The files of an installation with the addresses of the nodes."""

import pytest

from mockube.kubelet.installation import NODE_ADDRESS, address_of_peer, peers_of, with_addresses

TEXT = (
    f"- --initial-cluster=a=https://{address_of_peer('a')}:2380,b=https://{address_of_peer('b')}:2380,"
    f"c=https://{NODE_ADDRESS}:2380\n- --name=c\n"
)


def test_other_nodes_whose_addresses_are_needed():
    assert peers_of([TEXT, f"only {NODE_ADDRESS}"]) == {"a", "b"}


@pytest.mark.parametrize(
    ("others", "members"),
    [
        ({"a": "1.1.1.1", "b": "2.2.2.2"}, "a=https://1.1.1.1:2380,b=https://2.2.2.2:2380,c=https://3.3.3.3:2380"),
        ({"a": "", "b": "2.2.2.2"}, "b=https://2.2.2.2:2380,c=https://3.3.3.3:2380"),
        ({}, "c=https://3.3.3.3:2380"),
    ],
)  # fmt: skip
def test_members_on_nodes_that_are_not_there_are_left_out(others, members):
    assert with_addresses(TEXT, "3.3.3.3", others) == f"- --initial-cluster={members}\n- --name=c\n"
