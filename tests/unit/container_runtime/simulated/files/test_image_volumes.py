"""Volumes that are made of an image."""

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.files.mounts import file_system_of, shared_mounts
from mockube.container_runtime.simulated.shell.vfs.file_entry import NoSuchFile, ReadOnly
from tests.support.images import IMAGES


def files_in(reference, *, is_partial=False, **mount):
    volume = {"name": "v", "image": {"reference": reference}}
    container = {
        "name": "c",
        "image": "debian",
        "volumeMounts": [{"name": "v", "mountPath": "/volume", **mount}],
    }
    spec = {"containers": [container], "volumes": [volume], "securityContext": {"fsGroup": 7}}
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "1"}, "spec": spec}
    assert [mount.mount_path for mount in shared_mounts(pod, container, References())] == ["/dev/shm"]
    return file_system_of(IMAGES, pod, container, References(), is_partial=is_partial)


@pytest.mark.parametrize(
    ("mount", "files"),
    [
        ({}, {"/volume/dir/file": b"1\n", "/volume/file": b"2\n"}),
        ({"subPath": "dir"}, {"/volume/file": b"1\n"}),
        ({"subPath": "file"}, {"/volume": b"2\n"}),
    ],
)
def test_files_are_those_of_the_image(mount, files):
    present = files_in("quay.io/crio/artifact:v2", **mount)
    assert {path: present.read(path) for path in files} == files


def test_files_belong_to_root_and_cannot_be_written():
    files = files_in("quay.io/crio/artifact:v2")
    entry = files.entry("/volume/file")
    assert (entry.mode, entry.user, entry.group) == (0o644, 0, 0)
    for path in ("/volume/file", "/volume/new"):
        with pytest.raises(ReadOnly):
            files.write(path, b"x")


def test_image_with_programs_has_them():
    files = files_in("nginx:1.29")
    assert b"Welcome to nginx!" in files.read("/volume/usr/share/nginx/html/index.html")
    assert files.entry("/volume/bin/ls").mode == 0o755


@pytest.mark.parametrize(
    ("reference", "may_have_others"), [("quay.io/crio/artifact:v2", False), ("example.com/model", True)]
)
def test_program_finds_other_files_only_where_they_may_be(reference, may_have_others):
    files = files_in(reference, is_partial=True)
    if may_have_others:
        assert files.read("/volume/other") == b""
        return
    with pytest.raises(NoSuchFile):
        files.read("/volume/other")
