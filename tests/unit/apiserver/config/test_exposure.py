"""What a server lets in besides its own machine is said where it is started."""

from mockube.apiserver.config.exposure import warnings


def test_a_server_with_its_defaults_needs_no_words():
    assert warnings(["Node", "RBAC"], ["api.example.com"]) == []


def test_a_server_where_everybody_may_do_everything_says_so():
    (line,) = warnings(["AlwaysAllow"], [])
    assert line.startswith("--authorization-mode=AlwaysAllow: every user who is known may do everything")


def test_a_server_for_any_name_says_so():
    (line,) = warnings(["RBAC"], ["*"])
    assert line.startswith("--allowed-hosts=*: requests to any host name are served")
