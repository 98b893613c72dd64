"""Commands that read a volume of an object that does not exist are not simulated: nobody knows its files."""

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.files.absent_objects import with_absent_objects
from mockube.container_runtime.simulated.files.mounts import file_system_of
from mockube.container_runtime.simulated.shell.process import UnknownProgram
from tests.support.images import IMAGES


def files(secrets):
    container = {
        "name": "c",
        "image": "busybox",
        "volumeMounts": [{"name": "s", "mountPath": "/certs/"}],
    }
    pod = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "s", "secret": {"secretName": "made-by-job"}}],
        },
    }
    references = References(secrets=secrets)
    return with_absent_objects(file_system_of(IMAGES, pod, container, references), pod, container, references)


@pytest.mark.parametrize(
    "read", [lambda found: found.children("/certs"), lambda found: found.exists("/certs/ca.crt")]
)
def test_files_of_absent_object_are_not_known(read):
    with pytest.raises(UnknownProgram, match=r"what creates the files in /certs$"):
        read(files({}))


def test_other_files_are_known():
    assert not files({}).exists("/other/ca.crt")
    assert files({}).exists("/etc/hosts")


def test_files_of_present_object_are_known():
    found = files({"made-by-job": {"data": {"tls.crt": ""}}})
    assert [name for name in found.children("/certs") if not name.startswith("..")] == ["tls.crt"]
    assert not found.exists("/certs/ca.crt")
