"""Servers of other distributions: each is found by its entry point, and one that cannot be used is named in the log."""

from importlib.metadata import EntryPoint

import pytest

from mockube.container_runtime.simulated.shell.process import Host
from mockube.container_runtime.simulated.shell.programs import installed_servers
from mockube.container_runtime.simulated.shell.programs.installed_servers import (
    server_kinds,
)
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.shell_scripts import NOW, run

MODULE = """
from mockube.servers import ServerKind, server_of

def serve(process):
    server_of(process)
    yield
    return 0

SHELF = ServerKind(folder="/etc/shelf", programs={"shelf": serve}, command=("shelf",))
NUMBER = 1
"""


@pytest.fixture
def kinds(tmp_path, monkeypatch):
    """Return a function that returns the servers of some entry points."""
    (tmp_path / "company_servers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def kinds_of(*values):
        entries = {value: EntryPoint(value, value, installed_servers.GROUP) for value in values}
        monkeypatch.setattr(installed_servers, "find_entry_points", {installed_servers.GROUP: entries}.get)
        return server_kinds.__wrapped__()

    return kinds_of


def test_server_of_an_entry_point_has_its_programs(kinds):
    (kind,) = kinds("company_servers:SHELF")
    assert kind.has(["/usr/bin/shelf", "-x"])
    assert not kind.has(["books"])
    assert not kind.has([])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("company_servers:NUMBER", "it is a int, no ServerKind"),
        ("company_servers:absent", "AttributeError: module 'company_servers' has no attribute 'absent'"),
        ("no_such_module:SHELF", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_server_that_cannot_be_used_is_named_in_the_log(kinds, caplog, value, reason):
    assert [kind.folder for kind in kinds(value, "company_servers:SHELF")] == ["/etc/shelf"]
    assert [record.getMessage() for record in caplog.records] == [
        f"The server {value} cannot be used: {reason}"
    ]


def test_program_of_a_server_without_clients_is_not_simulated(kinds):
    (kind,) = kinds("company_servers:SHELF")
    host = Host(hostname="pod", files=FileSystem(), now=lambda: NOW, programs=kind.programs, is_strict=False)
    _, stderr, code = run("shelf", host=host)[:3]
    assert (stderr, code) == ("mockube: shelf does not run: it is not simulated\n", 1)
    assert [call.argv for call in host.calls] == [("shelf",)]
