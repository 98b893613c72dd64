"""netstat and ss show on which ports the programs of a pod listen."""

import pytest

from tests.support.running_containers import Cluster, shell

NGINX = {"name": "web", "image": "nginx"}


async def sockets(command, *containers, container="c", **spec):
    _, output = await Cluster(*containers, **spec).exec(*command.split(), container=container)
    return output.splitlines()


async def test_netstat_of_busybox_shows_servers_of_the_pod():
    assert await sockets("netstat -tlnp", NGINX, shell("sleep 100")) == [
        "Active Internet connections (only servers)",
        "Proto Recv-Q Send-Q Local Address           Foreign Address         State       PID/Program name    ",
        "tcp        0      0 0.0.0.0:80              0.0.0.0:*               LISTEN      -                   ",
        "tcp        0      0 :::80                   :::*                    LISTEN      -                   ",
    ]


async def test_processes_of_other_containers_show_in_a_shared_namespace():
    lines = await sockets("netstat -tlnp", NGINX, shell("sleep 100"), shareProcessNamespace=True)
    assert lines[2].endswith("LISTEN      7/nginx: master pro ")


@pytest.mark.parametrize(
    ("container", "local"),
    [
        (shell("httpd -f -p 8080", "s"), [":::8080"]),
        ({"name": "s", "image": "redis", "args": ["--port", "7000"]}, ["0.0.0.0:7000", ":::7000"]),
        (
            {"name": "s", "image": "python:3.12", "command": ["python", "-m", "http.server", "9000"]},
            ["0.0.0.0:9000"],
        ),
        (shell("sleep 100", "s", ports=[{"containerPort": 80}]), []),
        ({"name": "s", "image": "example.org/app", "ports": [{"containerPort": 8443}]}, [":::8443"]),
        (
            {
                "name": "s",
                "image": "registry.k8s.io/e2e-test-images/agnhost:2.53",
                "args": ["netexec", "--udp-port=53"],
            },
            [":::8080"],
        ),
    ],
)
async def test_sockets_are_those_on_which_the_program_listens(container, local):
    lines = await sockets("netstat -tln", container, shell("sleep 100"))
    assert [line.split()[3] for line in lines[2:]] == local


async def test_datagrams_show_with_their_option():
    image = "registry.k8s.io/e2e-test-images/agnhost:2.53"
    server = {"name": "s", "image": image, "args": ["netexec", "--udp-port=53"]}
    lines = await sockets("netstat -uln", server, shell("sleep 100"))
    assert [line.split()[:4] for line in lines[2:]] == [["udp", "0", "0", ":::53"]]
    assert await sockets("netstat -tn", server, shell("sleep 100")) == [
        "Active Internet connections (w/o servers)",
        "Proto Recv-Q Send-Q Local Address           Foreign Address         State       ",
    ]


async def test_ss_shows_the_same():
    other = {"name": "c", "image": "nicolaka/netshoot", "command": ["sleep", "100"]}
    assert await sockets("ss -tlnp", NGINX, other, shareProcessNamespace=True) == [
        "State  Recv-Q Send-Q     Local Address:Port  Peer Address:PortProcess",
        'LISTEN 0      4096               0.0.0.0:80          0.0.0.0:* users:(("nginx",pid=7,fd=9))',
        'LISTEN 0      4096                     *:80                *:* users:(("nginx",pid=7,fd=9))',
    ]
