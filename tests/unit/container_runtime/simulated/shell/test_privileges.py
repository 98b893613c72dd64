"""Programs whose result depends on the privileges of their container."""

import pytest

from mockube.container_runtime.simulated.shell.process import Host, UnknownProgram
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.shell_scripts import NOW, run


def container(capabilities="00000000a80425fb", no_new_privileges=0, user=0):
    status = f"CapEff:\t{capabilities}\nNoNewPrivs:\t{no_new_privileges}\n"
    files = FileSystem({"/proc/1/status": FileEntry(data=status.encode())})
    return Host(hostname="web-1", files=files, now=lambda: NOW, programs=PROGRAMS, user=user)


def test_change_of_an_interface_needs_its_capability():
    _, written, code, _ = run("ip", "link", "add", "dummy0", "type", "dummy", host=container())
    assert (written, code) == ("ip: RTNETLINK answers: Operation not permitted\n", 2)
    for argv, host in (
        (("link", "add", "dummy0"), container("000001ffffffffff")),
        (("addr", "show"), container()),
    ):
        with pytest.raises(UnknownProgram):
            run("ip", *argv, host=host)


@pytest.mark.parametrize(("no_new_privileges", "user"), [(0, 0), (1, 1000)])
def test_program_of_root_gets_its_user_unless_new_privileges_are_forbidden(no_new_privileges, user):
    host = container(no_new_privileges=no_new_privileges, user=1000)
    assert run("nnp", host=host)[0] == f"Effective uid: {user}\n"


def test_addresses_and_routes_of_a_container():
    host = container()
    host.address = "10.244.1.5"
    shown = run("ip", "addr", host=host)[0]
    assert "    inet 127.0.0.1/8 scope host lo\n" in shown
    assert "    inet 10.244.1.5/24 brd 10.244.1.255 scope global eth0\n" in shown
    assert "inet" not in run("ip", "link", "show", host=host)[0]
    assert run("ip", "route", host=host)[0].startswith("default via 10.244.1.1 dev eth0 \n")
    with pytest.raises(UnknownProgram):
        run("ip", "neigh", host=host)
