"""exec and attach of simulated containers, over WebSocket with a real client and over SPDY frames."""

import asyncio

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from tests.support.server.spdy_client import SpdyClient

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
POD = "/api/v1/namespaces/default/pods/shell"


@pytest.fixture(scope="module")
def pods(module_cluster):
    api = official.CoreV1Api(module_cluster.kubernetes())
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sh", "-c", "echo begun; while sleep 5; do echo on; done"],
    }
    api.create_namespaced_pod("default", {"metadata": {"name": "shell"}, "spec": {"containers": [container]}})
    module_cluster.wait("Pod", "shell", "Ready")
    return api


def execute(pods, *command, **options):
    wanted = {"stdout": True, "stderr": True, "stdin": False, "tty": False} | options
    return stream(
        pods.connect_get_namespaced_pod_exec,
        "shell",
        "default",
        command=list(command),
        _preload_content=False,
        **wanted,
    )


def test_exec_returns_both_streams_and_exit_code(pods):
    session = execute(pods, "sh", "-c", "echo out; echo err >&2; exit 3")
    session.run_forever(timeout=10)
    assert (session.read_stdout(), session.read_stderr(), session.returncode) == ("out\n", "err\n", 3)


def test_interrupt_ends_the_command_of_a_shell_with_a_terminal(pods):
    session = execute(pods, "sh", stdin=True, tty=True)
    session.write_stdin("echo be''gun; sleep 1000\n")
    read_until(session, "begun\r\n")
    session.write_stdin("\x03")
    session.write_stdin("echo code $?; exit 5\n")
    assert "code 130" in read_until(session, "code 130")
    session.run_forever(timeout=10)
    assert session.returncode == 5


def read_until(session, text):
    output = ""
    while text not in output:
        session.update(timeout=10)
        output += session.read_stdout(timeout=0)
        assert text in output or session.is_open(), output
    return output


def test_exec_streams_standard_input(pods):
    session = execute(pods, "sh", "-c", "read a; echo got $a; read b; echo and $b; read c", stdin=True)
    session.write_stdin("one\n")
    assert session.readline_stdout(timeout=10) == "got one"
    session.write_stdin("two\n")
    assert session.readline_stdout(timeout=10) == "and two"
    session.write_stdin("three\n")
    session.run_forever(timeout=10)
    assert session.returncode == 0


def test_files_persist_between_exec_commands(pods):
    execute(pods, "sh", "-c", "echo kept > /tmp/f").run_forever(timeout=10)
    session = execute(pods, "cat", "/tmp/f")
    session.run_forever(timeout=10)
    assert session.read_stdout() == "kept\n"


@pytest.mark.parametrize("size", [9_000, 100_000])
def test_exec_accepts_long_arguments(pods, size):
    session = execute(pods, "echo", "a" * size)
    session.run_forever(timeout=10)
    assert (session.read_stdout(), session.returncode) == ("a" * size + "\n", 0)


def test_costly_pattern_does_not_stop_cluster(pods):
    """Python's fnmatch takes 17 s for it, in which the manager would lose its lease."""
    script = "x=aaaaaaaaaaaaaaaa; x=$x$x$x$x; x=$x$x$x$x; x=$x$x$x$x; y=$x$x; x=$x$x$x$x; echo ${x##*${y}b} | wc -c"
    session = execute(pods, "sh", "-c", script)
    session.run_forever(timeout=10)
    assert (session.read_stdout(), session.returncode) == ("4097\n", 0)


def test_exec_names_missing_program(pods):
    session = execute(pods, "nginx", "-t")
    session.run_forever(timeout=10)
    status = orjson.loads(session.read_channel(3))
    prefix, _, problem = status["message"].partition("OCI runtime exec failed: exec failed: ")
    assert prefix.startswith(
        "Internal error occurred: error executing command in container: failed to exec in container: "
    )
    assert problem == 'unable to start container process: exec: "nginx": executable file not found in $PATH'


def test_exec_tty_echoes_edits_and_prompts(pods):
    session = execute(pods, "sh", stdin=True, tty=True)
    while session.is_open() and session.peek_stdout(timeout=10) != "/ # ":
        pass  # what is typed before the prompt is echoed before it
    session.write_stdin("echo ax\x7fb\rexit 5\r")
    session.run_forever(timeout=10)
    assert session.read_stdout() == "/ # echo ax\b \bb\r\nexit 5\r\nab\r\n/ # "
    assert session.returncode == 5


def test_attach_streams_only_new_output(module_cluster, pods):
    session = stream(
        pods.connect_get_namespaced_pod_attach, "shell", "default", stdout=True, _preload_content=False
    )
    module_cluster.advance(6)
    assert session.readline_stdout(timeout=10) == "on"
    session.close()


def test_exec_in_terminated_container_is_refused(module_cluster, pods):
    spec = {"containers": [{"name": "c", "image": "x", "command": ["true"]}], "restartPolicy": "Never"}
    pods.create_namespaced_pod("default", {"metadata": {"name": "done"}, "spec": spec})
    module_cluster.advance(1)
    with pytest.raises(official.ApiException, match="500 Internal Server Error"):
        stream(pods.connect_get_namespaced_pod_exec, "done", "default", command=["ls"], stdout=True)


async def test_exec_works_over_spdy(module_cluster, pods):
    query = [("command", "cat"), ("stdin", "true"), ("stdout", "true"), ("container", "c")]
    async with SpdyClient.upgrade(module_cluster, f"{POD}/exec", query) as (client, head):
        assert b"X-Stream-Protocol-Version: v4.channel.k8s.io" in head
        open_streams(client)
        sent = b"x" * 300_000
        client.send(3, sent)
        client.send(3, b"", last=True)
        await client.until_ended(1, 5)
        assert client.received[5] == sent
        assert orjson.loads(client.received[1]) == {"metadata": {}, "status": "Success"}


async def test_invalid_spdy_frames_end_exec_session(module_cluster, pods):
    query = [("command", "cat"), ("stdout", "true")]
    async with SpdyClient.upgrade(module_cluster, f"{POD}/exec", query) as (client, _):
        client.writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        while await asyncio.wait_for(client.reader.read(65536), 10):
            pass


async def test_exec_with_unknown_subprotocol_is_refused(module_cluster, pods):
    query = [("command", "ls"), ("stdout", "true")]
    with pytest.raises(AssertionError, match="403"):
        async with SpdyClient.upgrade(module_cluster, f"{POD}/exec", query, protocol="v9.channel.k8s.io"):
            pass


SHARED = {"volumes": [{"name": "v", "emptyDir": {}}]}


def container(name, script, place, **mount):
    mounts = [{"name": "v", "mountPath": place, **mount}]
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}


@pytest.fixture(scope="module")
def sharing(module_cluster):
    """Create a pod whose containers mount one volume at different paths; return the client."""
    api = official.CoreV1Api(module_cluster.kubernetes())
    writer = "cat /s/early; echo main > /s/main; sleep inf"
    spec = {
        **SHARED,
        "initContainers": [container("i", "mkdir /w/sub; echo early > /w/early; echo deep > /w/sub/d", "/w")],
        "containers": [
            container("a", writer, "/s"),
            container("b", "cat /data/early && sleep inf", "/data"),
            container("c", "sleep inf", "/part", subPath="sub"),
            container("d", "sleep inf", "/seen", readOnly=True),
        ],
    }
    api.create_namespaced_pod("default", {"metadata": {"name": "sharing"}, "spec": spec})
    module_cluster.wait("Pod", "sharing", "Ready")
    return api


def exec_output(api, name, script):
    wanted = {"stdout": True, "stderr": True, "stdin": False, "tty": False, "container": name}
    command = ["sh", "-c", script]
    session = stream(
        api.connect_get_namespaced_pod_exec,
        "sharing",
        "default",
        command=command,
        _preload_content=False,
        **wanted,
    )
    session.run_forever(timeout=10)
    return session.read_stdout() + session.read_stderr()


def test_containers_of_pod_share_volumes(sharing):
    assert (
        exec_output(sharing, "b", "cat /data/early /data/main; ls /data") == "early\nmain\nearly\nmain\nsub\n"
    )
    assert exec_output(sharing, "a", "echo by hand > /s/sub/new; rm /s/early") == ""
    assert exec_output(sharing, "c", "cat /part/new; echo more >> /part/new; ls /part") == "by hand\nd\nnew\n"
    assert (
        exec_output(sharing, "d", "cat /seen/sub/new; test -e /seen/early || echo gone")
        == "by hand\nmore\ngone\n"
    )
    assert "Read-only file system" in exec_output(sharing, "d", "echo x > /seen/y")
    assert "Resource busy" in exec_output(sharing, "a", "rm -r /s")
    assert exec_output(
        sharing, "b", "find /data | sort; chmod 700 /data/main; ls -l /data/main | cut -c1-10"
    ) == ("/data\n/data/main\n/data/sub\n/data/sub/d\n/data/sub/new\n-rwx------\n")


def test_logs_read_files_written_by_init_containers(sharing):
    for name in ("a", "b"):
        assert sharing.read_namespaced_pod_log("sharing", "default", container=name) == "early\n"


def create_interactive_pod(cluster, name, *command, **fields):
    """Create a pod with a container that reads stdin; return the client that attaches to it."""
    one = {"name": "c", "image": "busybox", "command": [*command], "stdin": True, **fields}
    api = official.CoreV1Api(cluster.kubernetes())
    spec = {"containers": [one], "restartPolicy": "Never"}
    api.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": spec})
    cluster.wait("Pod", name, "Ready")
    return api


def attach(api, name, **options):
    wanted = {"stdin": True, "stdout": True, "stderr": True, "tty": False} | options
    return stream(api.connect_get_namespaced_pod_attach, name, "default", _preload_content=False, **wanted)


def exit_code(cluster, name):
    found = cluster.wait("Pod", name, lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"))
    return found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]


def test_attach_sends_input_and_container_exits_with_its_code(module_cluster):
    api = create_interactive_pod(
        module_cluster,
        "reads",
        "sh",
        "-c",
        "read a; echo got $a > /tmp/f; cat /tmp/f; read code; exit $code",
    )
    session = attach(api, "reads")
    session.write_stdin("one\n")
    assert session.readline_stdout(timeout=10) == "got one"
    command = {"command": ["cat", "/tmp/f"], "stdout": True}
    assert stream(api.connect_get_namespaced_pod_exec, "reads", "default", **command) == "got one\n"
    assert api.read_namespaced_pod_log("reads", "default") == "got one\n"
    session.write_stdin("7\n")
    assert exit_code(module_cluster, "reads") == 7
    assert api.read_namespaced_pod_log("reads", "default") == "got one\n"


async def test_attach_shows_what_is_written_before_its_streams_are_open(module_cluster):
    """`kubectl run -i` attaches like this to a container that ends at once."""
    path = "/api/v1/namespaces/default/pods/early/attach"
    query = [("stdin", "true"), ("stdout", "true"), ("container", "c")]
    create_interactive_pod(module_cluster, "early", "sh", "-c", "read a; echo got $a; exit 3")
    async with (
        SpdyClient.upgrade(module_cluster, path, query) as (late, _),
        SpdyClient.upgrade(module_cluster, path, query) as (client, _),
    ):
        open_streams(client)
        client.send(3, b"one\n")
        await client.until_ended(1)
        open_streams(late)
        await late.until_ended(1, 5)
        assert late.received[5] == client.received[5] == b"got one\n"
    assert exit_code(module_cluster, "early") == 3


def open_streams(client):
    for number, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
        client.open(number, stream_Type=name)


def test_interactive_shell_ends_with_its_client(module_cluster):
    api = create_interactive_pod(module_cluster, "terminal", tty=True, stdinOnce=True)
    session = attach(api, "terminal", tty=True)
    session.write_stdin("echo $((6*7))\r")
    text = ""
    while "42\r\n" not in text:  # after the echoed input, and after a prompt if the shell started late
        session.update(timeout=10)
        text += session.read_stdout(
            timeout=0
        )  # received output only: without a timeout the call waits for more
    session.close()
    assert exit_code(module_cluster, "terminal") == 0


def test_interactive_container_is_killed_with_its_pod(module_cluster):
    api = create_interactive_pod(module_cluster, "killed", "cat")
    session = attach(api, "killed")
    session.write_stdin("x\n")
    assert session.readline_stdout(timeout=10) == "x"
    api.delete_namespaced_pod("killed", "default", grace_period_seconds=1)
    module_cluster.wait_gone("Pod", "killed")


def test_empty_line_and_end_of_input_keep_exit_status(pods):
    session = execute(pods, "sh", stdin=True, tty=True)
    session.write_stdin("\r(exit 5)\r\r\x04")
    session.run_forever(timeout=10)
    assert session.returncode == 5
