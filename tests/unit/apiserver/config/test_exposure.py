"""What a server lets in besides its own machine is said where it is started."""

import pytest

from mockube.apiserver.config.exposure import warnings


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1"])
def test_a_server_for_its_own_machine_needs_no_words(address):
    assert warnings(address, ["AlwaysAllow"], ["api.example.com"]) == []


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.7", "fe80::1"])
def test_others_reach_a_server_where_everybody_may_do_everything(address):
    (line,) = warnings(address, ["AlwaysAllow"], [])
    assert line.startswith(f"Listening on {address}, which other machines may reach")
    assert warnings(address, ["Node", "RBAC"], []) == []


def test_a_server_for_any_name_says_so():
    (line,) = warnings("127.0.0.1", ["AlwaysAllow"], ["*"])
    assert line.startswith("--allowed-hosts=*: requests to any host name are served")
