"""Container processes have the capabilities of their security context, and gain none."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from mockube.container_runtime.config.capabilities import capability_bits, gains_no_privileges
from mockube.container_runtime.process.command import CommandSpec, Identity, command_beside
from mockube.container_runtime.process.local_process import start_process
from mockube.container_runtime.process.namespace_support import NamespaceSupport

of_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="these privileges are Linux's")
DEFAULT = 0xA80425FB
"""The capabilities of a container with containerd, as /proc shows them."""
NONE = 0
KINDS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


async def output(spec):
    process = await start_process(spec)
    try:
        assert await process.wait() == 0
        return (await process.outputs[1].read()).decode()
    finally:
        await process.end()


def spec_of(context, *, user=None, argv=("/bin/cat", "/proc/self/status"), **fields):
    return CommandSpec(
        argv=argv,
        environment={},
        directory=Path("/"),
        identity=Identity(user=user, groups=() if user is None else (user,)),
        capabilities=capability_bits(context),
        gains_nothing=gains_no_privileges(context),
        **fields,
    )


def own_privileges(status):
    """Return the capabilities in a /proc/PID/status in the order of KINDS, and whether the process gains none."""
    lines = dict(line.split(":\t") for line in status.splitlines() if line)
    return [int(lines[kind], 16) for kind in KINDS], lines["NoNewPrivs"] == "1"


async def privileges(spec):
    return own_privileges(await output(spec))


@pytest.fixture
def program_of_root():
    """A program that prints its user, and that everybody runs as root; folders of pytest are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = Path(folder) / "id"
        program.write_bytes(Path("/usr/bin/id").resolve().read_bytes())
        program.chmod(0o4755)
        yield str(program)


OWN = own_privileges(Path("/proc/self/status").read_text()) if sys.platform == "linux" else ()


@pytest.mark.thorough
@of_root
@on_linux
@pytest.mark.parametrize(
    ("context", "bounding", "gains_nothing"),
    [
        ({}, DEFAULT, False),
        ({"allowPrivilegeEscalation": True}, DEFAULT, False),
        ({"allowPrivilegeEscalation": False}, DEFAULT, True),
        ({"capabilities": {"drop": ["ALL"]}}, NONE, False),
        ({"capabilities": {"drop": ["all"], "add": ["NET_BIND_SERVICE"]}}, 1 << 10, False),
        ({"capabilities": {"drop": ["CAP_CHOWN"]}}, DEFAULT - 1, False),
        ({"capabilities": {"add": ["NET_ADMIN"]}}, DEFAULT | 1 << 12, False),
    ],
)
async def test_capabilities_are_those_of_the_security_context(context, bounding, gains_nothing):
    of_root_user = [0, bounding, bounding, bounding, 0]
    of_another_user = [0, 0, 0, bounding, 0]
    assert await privileges(spec_of(context)) == (of_root_user, gains_nothing)
    assert await privileges(spec_of(context, user=0)) == (of_root_user, gains_nothing)
    assert await privileges(spec_of(context, user=1234)) == (of_another_user, gains_nothing)


@pytest.mark.thorough
@of_root
@on_linux
async def test_privileged_process_has_all_capabilities_of_this_one():
    found, _ = await privileges(spec_of({"privileged": True}))
    assert found[3] == OWN[0][3]


@pytest.mark.thorough
@on_linux
async def test_process_of_any_user_gains_nothing_if_its_context_says_so():
    found = [await privileges(spec_of({"allowPrivilegeEscalation": allowed})) for allowed in (False, True)]
    assert [gains_nothing for _, gains_nothing in found] == [True, False]


@pytest.mark.thorough
@of_root
@on_linux
async def test_program_of_root_gives_no_rights_to_process_that_gains_nothing(program_of_root):
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    command = (program_of_root, "-u")
    assert await output(spec_of({}, user=1234, argv=command)) == "0\n"
    assert await output(spec_of(context, user=1234, argv=command)) == "1234\n"


@pytest.mark.thorough
@of_root
@on_linux
async def test_command_in_a_container_has_no_more_than_the_container(tmp_path):
    if not (await NamespaceSupport(tmp_path).check()).processes:
        pytest.skip("this machine allows no namespaces of processes")
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    spec = spec_of(context, user=1234, argv=("/bin/sleep", "1000"), has_own_processes=True)
    process = await start_process(spec)
    try:
        await process.wait_for_start()
        command = command_beside(process.pid, spec_of(context, user=1234, has_own_processes=True))
        assert await privileges(command) == ([0, 0, 0, 0, 0], True)
    finally:
        await process.end()
