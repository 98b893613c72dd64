"""The containers of a pod with `shareProcessNamespace`: the files, the processes and the signals of each other."""

import pytest

from tests.support.event_loop import yield_to_loop
from tests.support.running_containers import Cluster, shell

NGINX = {"name": "web", "image": "nginx"}
SITE = {"name": "site", "emptyDir": {}}


def shared(*containers, **spec):
    return Cluster(*containers, shareProcessNamespace=True, **spec)


async def test_root_of_another_process_has_its_files():
    cluster = shared(NGINX, shell("sleep 100"))
    script = "head -1 /proc/$(pgrep nginx | head -1)/root/etc/nginx/nginx.conf; cat /proc/7/comm; ls -l /proc/7/root; ls -d /proc/7"
    assert await cluster.exec("sh", "-c", script) == (
        0,
        "user  nginx;\nnginx\nlrwxrwxrwx    1 root     root             1 Jan  1 00:00 /proc/7/root -> /\n/proc/7\n",
    )


async def test_file_that_is_written_below_a_root_is_that_of_the_other_container():
    cluster = shared(NGINX, shell("sleep 100"))
    await cluster.exec("sh", "-c", "echo hello > /proc/7/root/usr/share/nginx/html/index.html")
    assert await cluster.exec("cat", "/usr/share/nginx/html/index.html", container="web") == (0, "hello\n")
    assert (await cluster.exec("cat", "/usr/share/nginx/html/index.html"))[0] == 1


async def test_volume_of_another_container_is_below_its_root():
    web = {**NGINX, "volumeMounts": [{"name": "site", "mountPath": "/site"}]}
    cluster = shared(web, shell("sleep 100"), volumes=[SITE])
    assert await cluster.exec("sh", "-c", "echo hi > /proc/7/root/site/a; ls /proc/7/root/site") == (0, "a\n")
    assert await cluster.exec("cat", "/site/a", container="web") == (0, "hi\n")


async def test_search_of_all_files_does_not_follow_the_roots_of_others():
    cluster = shared(NGINX, shell("sleep 100"))
    code, output = await cluster.exec("find", "/", "-name", "nginx.conf")
    assert (code, output) == (0, "")
    assert (await cluster.exec("find", "/proc/7/root/", "-name", "nginx.conf"))[1] == (
        "/proc/7/root/etc/nginx/nginx.conf\n"
    )


@pytest.mark.parametrize(
    ("context", "output"),
    [
        ({}, "cat: can't open '/proc/7/root/etc/hostname': Permission denied\n"),
        ({"capabilities": {"add": ["SYS_PTRACE"]}}, "p\n"),
    ],
)
async def test_root_of_a_process_of_another_user_needs_a_capability(context, output):
    other = shell("sleep 100", "other", securityContext={"runAsUser": 1000})
    cluster = shared(other, shell("sleep 100", securityContext=context))
    assert (await cluster.exec("cat", "/proc/7/root/etc/hostname"))[1] == output


async def test_container_alone_does_not_see_others():
    cluster = Cluster(NGINX, shell("sleep 100"))
    assert (await cluster.exec("ls", "/proc/7"))[0] == 1


async def test_list_of_processes_has_those_that_a_server_starts():
    cluster = shared(NGINX, shell("sleep 100"))
    _, output = await cluster.exec("ps", "ax")
    assert [line[21:] for line in output.splitlines()[1:4]] == [
        "/pause",
        "nginx: master process nginx -g daemon off;",
        "nginx: worker process",
    ]


async def reload_lines(cluster, container):
    for _ in range(200):
        await yield_to_loop()
    return [line.partition("1#1: ")[2].rstrip() for line in await cluster.log(container) if "1#1: " in line]


@pytest.mark.parametrize("is_shared", [True, False])
async def test_server_reads_its_configuration_again_at_a_hang_up(is_shared):
    site = {"name": "site", "configMap": {"name": "x", "optional": True}}
    web = {**NGINX, "volumeMounts": [{"name": "site", "mountPath": "/etc/nginx/conf.d"}]}
    cluster = Cluster(web, shell("sleep 100"), volumes=[site], shareProcessNamespace=is_shared)
    cluster.runtime.start_container(cluster.pod, "web", 0)
    await cluster.advance(1)
    command = ("kill -HUP 7", "c") if is_shared else ("kill -HUP 1", "web")
    assert await cluster.exec("sh", "-c", command[0], container=command[1]) == (0, "")
    assert (await reload_lines(cluster, "web"))[-5:] == [
        "signal 1 (SIGHUP) received, reconfiguring",
        "reconfiguring",
        'using the "epoll" event method',
        "start worker processes",
        "start worker process 29",
    ]
    assert cluster.end("web") is None
    await cluster.exec("sh", "-c", command[0].replace("HUP", "TERM"), container=command[1])
    await cluster.advance(1)
    assert cluster.end("web").code == 0


async def test_mistake_in_a_configuration_that_is_read_again_is_logged():
    cluster = Cluster({**NGINX, "name": "c"})
    await cluster.exec("sh", "-c", "echo 'bad;' > /etc/nginx/conf.d/default.conf; kill -HUP 1")
    assert (await reload_lines(cluster, "c"))[-1] == (
        'unknown directive "bad" in /etc/nginx/conf.d/default.conf:1'
    )
    assert cluster.runtime.kills(cluster.pod) == {}


def debugged(**fields):
    debugger = shell("sleep 100", "debugger", targetContainerName="web", **fields)
    cluster = Cluster(NGINX, shell("sleep 100"))
    cluster.pod["spec"]["ephemeralContainers"] = [debugger]
    state = {"running": {"startedAt": cluster.started}}
    cluster.pod["status"]["ephemeralContainerStatuses"] = [
        {"name": "debugger", "restartCount": 0, "state": state}
    ]
    return cluster


async def test_ephemeral_container_sees_the_processes_and_the_files_of_its_target():
    cluster = debugged()
    _, output = await cluster.exec("ps", container="debugger")
    assert [line.split(maxsplit=3)[::3] for line in output.splitlines()[1:4]] == [
        ["1", "nginx: master process nginx -g daemon off;"],
        ["21", "sleep 100"],
        ["29", "nginx: worker process"],
    ]
    assert await cluster.exec("head", "-1", "/proc/1/root/etc/nginx/nginx.conf", container="debugger") == (
        0,
        "user  nginx;\n",
    )
    assert (await cluster.exec("cat", "/proc/1/comm", container="debugger"))[1] == "nginx\n"


async def test_target_sees_the_process_of_an_ephemeral_container_and_others_do_not():
    cluster = debugged()
    assert (await cluster.exec("cat", "/proc/21/comm", container="web"))[1] == "sleep\n"
    assert (await cluster.exec("cat", "/proc/21/comm"))[0] == 1
    assert "nginx" not in (await cluster.exec("ps"))[1]


async def test_ephemeral_container_ends_the_first_process_of_its_target_only_by_signals_that_it_handles():
    cluster = debugged()
    await cluster.exec("kill", "-9", "1", container="debugger")
    assert cluster.runtime.kills(cluster.pod) == {}
    await cluster.exec("kill", "1", container="debugger")
    assert cluster.runtime.kills(cluster.pod)["web"].code == 0


async def test_command_of_a_container_reads_the_files_of_one_that_starts_later():
    script = "until head -1 /proc/14/root/etc/nginx/nginx.conf 2>/dev/null; do sleep 1; done; sleep 99"
    cluster = shared(shell(script), NGINX)
    statuses = cluster.pod["status"]["containerStatuses"]
    statuses[1]["state"] = {"waiting": {}}
    cluster.runtime.start_container(cluster.pod, "c", 0)
    await cluster.advance(3)
    assert await cluster.log() == []
    statuses[1]["state"] = statuses[0]["state"]
    await cluster.advance(2)
    assert await cluster.log() == ["user  nginx;\n"]
