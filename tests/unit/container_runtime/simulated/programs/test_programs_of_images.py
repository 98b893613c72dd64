"""The commands of clients, and the logs, of containers whose images lack programs."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.programs.commands import host_of, main_process
from mockube.container_runtime.simulated.programs.other_processes import first_argv
from mockube.container_runtime.simulated.programs.program import command_of
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Output
from mockube.container_runtime.start_errors import StartError
from tests.support.images import IMAGES


def pod(image, **fields):
    container = {"name": "c", "image": image, **fields}
    return {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"containers": [container]}}


def host(tree):
    return host_of(
        IMAGES, tree, tree["spec"]["containers"][0], References(), datetime(2030, 1, 1, tzinfo=UTC)
    )


def run(execution):
    output = b""
    try:
        while True:
            effect = next(execution)
            output += effect.data if isinstance(effect, Output) else b""
    except StopIteration as stop:
        return output.decode(), stop.value


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "ping"),
        ("busybox", "curl"),
        ("gcr.io/distroless/static", "sh"),
        ("gcr.io/distroless/nodejs20-debian11", "/bin/sh"),
        ("gcr.io/distroless/python3-debian12:nonroot", "sh"),
        ("alpine", "/bin/bash"),
    ],
)
def test_command_of_a_client_is_not_started(image, name):
    with pytest.raises(StartError, match=f'^exec: "{name}": '):
        run(run_command(host(pod(image)), [name], {}))


def test_image_without_a_shell_has_one_with_the_tag_for_debugging():
    assert run(
        run_command(host(pod("gcr.io/distroless/cc-debian12:debug")), ["sh", "-c", "echo hi"], {})
    ) == ("hi\n", 0)


def test_programs_are_listed_that_the_image_has():
    listed, _ = run(run_command(host(pod("busybox")), ["ls", "/bin"], {}))
    assert "wget" in listed.split()
    assert "curl" not in listed.split()


def test_log_of_a_container_that_was_not_started_is_empty():
    tree = pod("busybox", args=["curl", "http://web"])
    process = main_process(IMAGES, tree, tree["spec"]["containers"][0], References(), host(tree))
    assert run(process) == ("", 128)


def test_log_says_what_the_entrypoint_lacks():
    tree = pod("mysql:8.4")
    process = main_process(IMAGES, tree, tree["spec"]["containers"][0], References(), host(tree))
    text, code = run(process)
    assert code == 1
    assert "    - MYSQL_ROOT_PASSWORD\n" in text


def test_log_of_a_server_with_options_is_that_of_the_server():
    tree = pod("mongo:7", args=["--auth"])
    process = main_process(IMAGES, tree, tree["spec"]["containers"][0], References(), host(tree))
    assert "Waiting for connections" in next(process).data.decode()


@pytest.mark.parametrize(
    ("fields", "argv"),
    [
        ({"image": "mongo:7"}, ("mongod --bind_ip_all",)),
        ({"image": "mongo:7", "args": ["--auth"]}, ("mongod", "--auth")),
        ({"image": "mongo:7", "args": ["mongod", "--auth"]}, ("mongod", "--auth")),
        ({"image": "mongo:7", "args": ["sleep", "1"]}, ("sleep", "1")),
        (
            {"image": "nginx", "args": ["nginx", "-g", "daemon off;"]},
            ("nginx", "-g", "daemon off;"),
        ),
    ],
)
def test_first_process_of_a_server_has_its_options(fields, argv):
    tree = pod(**fields)
    assert first_argv(IMAGES, tree, tree["spec"]["containers"][0], {}) == argv


def test_program_that_the_table_describes_runs_its_script():
    tree = pod("yinfangchen/hotelreservation:latest", command=["geo"])
    container = tree["spec"]["containers"][0]
    assert command_of(IMAGES, container)[:2] == ("sh", "-c")
    assert command_of(IMAGES, container)[3:] == ("geo",)
    assert LiveContainers(IMAGES, Records()).command(tree, container) == command_of(IMAGES, container)
    assert first_argv(IMAGES, tree, container, {}) == ("geo",)


@pytest.mark.parametrize(
    ("image", "command", "output"),
    [
        ("busybox", "id", "uid=0(root) gid=0(root) groups=0(root),10(wheel)\n"),
        ("debian", "id", "uid=0(root) gid=0(root) groups=0(root)\n"),
        ("postgres:16", "id postgres", "uid=999(postgres) gid=999(postgres) groups=999(postgres)\n"),
        ("postgres:16", "id -u postgres; id -un 999", "999\npostgres\n"),
        ("busybox", "id nosuch || ls -l /etc/shadow | cut -c 1-10", "-rw-------\n"),
        ("debian", "stat -c '%a %g' /etc/shadow", "640 42\n"),
        ("busybox", "grep wheel /etc/group; echo $HOME", "wheel:x:10:root\n/root\n"),
    ],
)
def test_accounts_are_those_of_the_image(image, command, output):
    tree = pod(image)
    environment = environment_of(tree, tree["spec"]["containers"][0], References())
    lines = run(run_command(host(tree), ["sh", "-c", f"{command}"], environment))[0]
    assert "".join(line for line in lines.splitlines(keepends=True) if "unknown user" not in line) == output


def test_run_as_user_has_the_root_folder_as_home():
    tree = pod("busybox", securityContext={"runAsUser": 1000})
    assert environment_of(tree, tree["spec"]["containers"][0], References())["HOME"] == "/"


@pytest.mark.parametrize(("program", "words"), [("useradd", "not simulated"), ("nosuch", "not found")])
def test_program_that_the_image_has_is_not_simulated(program, words):
    tree = pod("debian")
    present = host(tree)
    present.is_strict = False
    assert run(run_command(present, ["sh", "-c", program], {})) == (f"sh: 1: {program}: {words}\n", 127)
