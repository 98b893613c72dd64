"""Which mounts of a subPath runc refuses, because a kubelet made a folder for it."""

import pytest

from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.predictions import end_of_entrypoint
from tests.support.images import IMAGES

CONFIG = {"data": {"nginx.conf": "x"}, "binaryData": {"b": "eA=="}}
ITEMS = {"items": [{"key": "nginx.conf", "path": "a/nginx.conf"}]}


def end(part, path="/etc/nginx/nginx.conf", *, kind="configMap", found=CONFIG, image="nginx", **source):
    name = {"name": "conf"} if kind == "configMap" else {"secretName": "conf"}
    mounts = [{"name": "other", "mountPath": "/x"}, {"name": "v", "mountPath": path, "subPath": part}]
    container = {"name": "c", "image": image, "volumeMounts": mounts}
    volumes = [{"name": "v", kind: {**name, **source}}]
    pod = {"metadata": {"uid": "1-2"}, "spec": {"containers": [container], "volumes": volumes}}
    return end_of_entrypoint(IMAGES, pod, container, script_of({}), lambda _: found, lambda _: found)


@pytest.mark.parametrize("kind", ["configMap", "secret"])
def test_folder_over_a_file_of_the_image_is_refused(kind):
    found = end("ngnix.conf", kind=kind)
    assert found.exit_code == 128
    assert (
        'error mounting "/var/lib/kubelet/pods/1-2/volume-subpaths/v/c/1" to rootfs at "/etc/nginx/nginx.conf"'
        in found.start_error
    )
    assert "not a directory: Are you trying to mount a directory onto a file" in found.start_error


@pytest.mark.parametrize(
    "options",
    [
        {"part": "nginx.conf"},
        {"part": "b"},
        {"part": "a/nginx.conf", **ITEMS},
        {"part": "a/", **ITEMS},
        {"part": "other", "path": "/etc/new/file"},
        {"part": "other", "found": None},
        {"part": "other", "found": {}},
        {"part": "other", "image": "team/unknown"},
    ],
)
def test_other_mounts_are_not(options):
    assert "mounting" not in str(end(**options))
