"""Root in a container may do what its capabilities let it do, and others nothing more than their files."""

import pytest

from mockube.container_runtime.simulated.files.users import identity_of
from mockube.container_runtime.simulated.programs.server_start import failed_by_capabilities
from mockube.container_runtime.simulated.shell.access import READ, ContainerUser, is_allowed
from mockube.container_runtime.simulated.shell.vfs.file_entry import (
    AccessDenied,
    FileEntry,
    NoSuchFile,
    OperationNotPermitted,
)
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES


def identity(image="busybox", **context):
    container = {"name": "c", "image": image, "securityContext": context}
    return identity_of(IMAGES, {"metadata": {}, "spec": {"containers": [container]}}, container)


def dropped(*added, **context):
    return identity(capabilities={"drop": ["ALL"], "add": [*added]}, **context)


def files_of(user):
    entries = {
        "/": FileEntry(),
        "/own": FileEntry(data=b"own", mode=0o600),
        "/other": FileEntry(data=b"other", mode=0o600, user=5, group=5),
        "/sticky": FileEntry(mode=0o1777, user=5),
        "/sticky/x": FileEntry(data=b"", mode=0o666, user=6),
    }
    return FileSystem(entries, user=user)


def test_default_is_what_containerd_gives():
    user = identity()
    assert user.capabilities is None
    assert user.has("CHOWN")
    assert user.has("NET_BIND_SERVICE")
    assert not user.has("SYS_ADMIN")
    assert identity(privileged=True).has("SYS_ADMIN")
    assert identity(capabilities={"add": ["CAP_SYS_TIME"]}).has("SYS_TIME")
    assert not identity(capabilities={"drop": ["chown"]}).has("CHOWN")


def test_users_besides_root_have_none():
    user = identity(runAsUser=1000, capabilities={"add": ["CHOWN", "DAC_OVERRIDE"]})
    assert not user.has("CHOWN")
    assert user == ContainerUser(1000, 0)


def test_files_without_dac_override():
    files = files_of(dropped())
    assert files.read("/own") == b"own"
    with pytest.raises(AccessDenied):
        files.read("/other")
    assert files_of(dropped("DAC_OVERRIDE")).read("/other") == b"other"
    assert files_of(dropped("DAC_READ_SEARCH")).read("/other") == b"other"
    assert not is_allowed(dropped(), 5, 5, 0o640, READ)


def test_owners_and_modes():
    files = files_of(dropped())
    files.change("/own", mode=0o644)
    with pytest.raises(OperationNotPermitted):
        files.change("/own", user=5)
    with pytest.raises(OperationNotPermitted):
        files.change("/other", mode=0o644)
    files_of(dropped("CHOWN")).change("/own", user=5)
    files_of(dropped("FOWNER")).change("/other", mode=0o644)
    with pytest.raises(OperationNotPermitted):
        files_of(dropped("DAC_OVERRIDE")).remove("/sticky/x")
    files_of(dropped("DAC_OVERRIDE", "FOWNER")).remove("/sticky/x")


def test_files_as_another_user_sees_them():
    worker = files_of(ContainerUser()).view(user=ContainerUser(101, 101))
    with pytest.raises(AccessDenied):
        worker.read("/own")
    assert files_of(ContainerUser()).read("/own") == b"own"


def test_file_in_proc_cannot_be_created():
    files = FileSystem({"/": FileEntry(), "/proc": FileEntry()})
    with pytest.raises(NoSuchFile):
        files.write("/proc/x", b"")


@pytest.mark.parametrize(
    ("image", "line"),
    [
        ("nginx", 'nginx: [emerg] chown("/var/cache/nginx/client_temp", 101) failed (1: Operation not permitted)'),
        ("redis:7", 'error: failed switching to "redis": operation not permitted'),
        ("postgres:16", 'error: failed switching to "postgres": operation not permitted'),
        ("mongo:7", 'error: failed switching to "mongodb": operation not permitted'),
    ],
)  # fmt: skip
def test_servers_that_start_as_root(image, line):
    container = {"name": "c", "image": image}
    failed = failed_by_capabilities(IMAGES, container, dropped())
    assert failed is not None
    assert (failed.lines[-1], failed.exit_code) == (line, 1)
    assert failed_by_capabilities(IMAGES, container, dropped("CHOWN", "SETGID", "SETUID")) is None
    assert failed_by_capabilities(IMAGES, container, identity()) is None
    assert failed_by_capabilities(IMAGES, container, dropped(runAsUser=101)) is None
    assert failed_by_capabilities(IMAGES, {**container, "command": ["sleep", "1"]}, dropped()) is None
