"""Warnings for settings that admit clients from other machines."""

from mockube.apiserver.config.exposure import exposure_warnings


def test_default_server_has_no_exposure_warning():
    assert exposure_warnings(["Node", "RBAC"], ["api.example.com"]) == []


def test_always_allow_has_exposure_warning():
    (line,) = exposure_warnings(["AlwaysAllow"], [])
    assert line.startswith("--authorization-mode=AlwaysAllow: every authenticated user may do everything")


def test_any_host_has_exposure_warning():
    (line,) = exposure_warnings(["RBAC"], ["*"])
    assert line.startswith("--allowed-hosts=*: requests to any host name are served")
