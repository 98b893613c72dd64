"""The files in /proc about the first process of a container, and its accounts."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.config.capabilities import capability_bits
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.files.mounts import files_of
from mockube.container_runtime.simulated.files.users import identity_of, user_names
from mockube.container_runtime.simulated.programs.other_processes import other_processes, process_entries
from mockube.container_runtime.simulated.shell.access import ContainerUser
from tests.support.images import IMAGES

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(*containers, **spec):
    running = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}
    statuses = [{"name": container["name"], "restartCount": 0, "state": running} for container in containers]
    return {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": list(containers), **spec},
        "status": {"containerStatuses": statuses},
    }


def container(name="c", image="nginx", **fields):
    return {"name": name, "image": image, **fields}


def entry(path, tree):
    return process_entries(IMAGES, tree, tree["spec"]["containers"][0], References())[path].data.decode()


@pytest.mark.parametrize(
    ("context", "bits"),
    [
        ({}, "00000000a80425fb"),
        ({"capabilities": {"add": ["NET_ADMIN", "SYS_TIME"]}}, "00000000aa0435fb"),
        ({"capabilities": {"drop": ["ALL"]}}, "0000000000000000"),
        ({"capabilities": {"drop": ["ALL"], "add": ["CAP_NET_BIND_SERVICE"]}}, "0000000000000400"),
        ({"privileged": True}, "000001ffffffffff"),
    ],
)
def test_capabilities_have_the_bits_of_linux(context, bits):
    assert f"{capability_bits(context):016x}" == bits


def test_status_tells_of_the_security_context():
    context = {"runAsUser": 1000, "runAsGroup": 3000, "allowPrivilegeEscalation": False}
    tree = pod(container(securityContext={**context, "seccompProfile": {"type": "RuntimeDefault"}}))
    lines = entry("/proc/1/status", tree).splitlines()
    assert {
        "Uid:\t1000\t1000\t1000\t1000",
        "Gid:\t3000\t3000\t3000\t3000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    } <= {*lines}
    assert "CapEff:\t0000000000000000" in lines
    assert "CapBnd:\t00000000a80425fb" in lines


def test_command_line_and_variables_of_the_first_process():
    tree = pod(container(command=["sleep", "$(N)"], env=[{"name": "N", "value": "5"}]))
    assert entry("/proc/1/cmdline", tree) == "sleep\0005\0"
    assert "N=5" in entry("/proc/1/environ", tree).split("\0")
    assert entry("/proc/1/comm", pod(container())) == "nginx\n"


def ignore(container, number):
    pass


def test_containers_see_each_other_with_a_shared_namespace():
    containers = [
        container("a"),
        container("b", "busybox", command=["sleep", "5"], securityContext={"runAsUser": 7}),
    ]
    tree = pod(*containers, shareProcessNamespace=True)
    assert [
        (other.pid, other.argv, other.user)
        for other in other_processes(IMAGES, tree, containers[1], {}, NOW, ignore)
    ] == [
        (1, ("/pause",), 65535),
        (7, ("nginx: master process nginx -g daemon off;",), 0),
        (8, ("nginx: worker process",), 101),
        (14, ("sleep", "5"), 7),
    ]
    alone = pod(*containers)
    assert [other.argv[0] for other in other_processes(IMAGES, alone, containers[1], {}, NOW, ignore)] == [
        "sleep"
    ]


def test_user_of_an_image_has_the_group_and_the_name_of_its_account():
    tree = pod(container(image="nginxinc/nginx-unprivileged"))
    main = tree["spec"]["containers"][0]
    assert identity_of(IMAGES, tree, main) == ContainerUser(101, 101, ())
    assert user_names(IMAGES, main)[101] == "nginx"
    assert b"nginx:x:101:101:" in files_of(IMAGES, tree, main, References())["/etc/passwd"].data


@pytest.mark.parametrize(
    ("image", "identifier"),
    [
        ("alpine:3.22", b"ID=alpine\n"),
        ("nginx:1.27-alpine", b"ID=alpine\n"),
        ("nginx", b"ID=debian\n"),
        ("ubuntu", b"ID=ubuntu\n"),
        ("busybox", b""),
        ("example/app", b""),
    ],
)
def test_os_release_is_that_of_the_image(image, identifier):
    tree = pod(container(image=image))
    present = files_of(IMAGES, tree, tree["spec"]["containers"][0], References()).get("/etc/os-release")
    assert (present is None) == (not identifier)
    assert present is None or identifier in present.data
