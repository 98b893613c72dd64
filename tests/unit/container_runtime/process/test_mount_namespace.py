"""Which folders a container with mounts has for itself, and where a path of a container lies on the machine."""

import pytest

from mockube.container_runtime.process.mount_namespace import Bind, Mounts, own_folders

MOUNTS = Mounts(
    "/root", (Bind("/v/tmp", "/tmp", read_only=False), Bind("/v/certs", "/tmp/certs", read_only=True))
)


@pytest.mark.parametrize(
    ("mount_paths", "further", "folders"),
    [
        ([], [], {"/", "/dev", "/tmp"}),
        (["/files"], [], {"/", "/dev", "/tmp"}),
        (["/var/run/secrets/a"], [], {"/", "/dev", "/tmp", "/var", "/var/run", "/var/run/secrets"}),
        (["/tmp"], [], {"/", "/dev"}),
        (["/tmp", "/tmp/a/b"], ["/tmp/c"], {"/", "/dev"}),
        ([], ["/app/src"], {"/", "/dev", "/tmp", "/app", "/app/src"}),
    ],
)
def test_folders_on_the_way_to_mounts_are_the_containers_own(mount_paths, further, folders):
    assert own_folders(mount_paths, further) == folders


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/tmp", "/v/tmp"),
        ("/tmp/a", "/v/tmp/a"),
        ("/tmp/certs/a", "/v/certs/a"),
        ("/tmpfile", None),
        ("/", None),
    ],
)
def test_innermost_mount_of_a_path_is_its_source(path, source):
    assert MOUNTS.source_of(path) == source
