"""A container's command determines its duration and exit code."""

from contextlib import closing

import pytest

from mockube.container_runtime.behavior import RunBehavior
from mockube.container_runtime.simulated.files.users import ContainerUser
from mockube.container_runtime.simulated.programs.program import (
    CommandContext,
    invocation_of,
    program_of,
    start_invocation,
)
from mockube.container_runtime.simulated.shell.process import CommandStart
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES

LOG_GENERATOR = """
import random, time
count = 0
while True:
    count += 1
    print(count, random.random(), flush=True)
    time.sleep(0.1)
"""


def parsed_program(*argv, image="busybox"):
    return program_of(IMAGES, {"image": image, "command": list(argv)})


@pytest.mark.parametrize(
    ("argv", "seconds", "code"),
    [
        pytest.param(["sleep", "30"], 30, 0, id="sleep"),
        pytest.param(["/bin/sleep", "1.5m"], 90, 0, id="sleep with a path and minutes"),
        pytest.param(["sleep", "1h", "30m"], 5400, 0, id="sleep with two durations"),
        pytest.param(["sleep", "infinity"], None, 0, id="endless sleep"),
        pytest.param(["sleep", "soon"], 0, 1, id="sleep with an invalid duration"),
        pytest.param(["sleep"], 0, 1, id="sleep without a duration"),
        pytest.param(["true"], 0, 0, id="true"),
        pytest.param(["false"], 0, 1, id="false"),
        pytest.param(["tail", "-f", "/dev/null"], None, 0, id="tail of an empty file"),
        pytest.param(["sh", "-c", "exit 3"], 0, 3, id="exit"),
        pytest.param(["/bin/sh", "-ec", "sleep 5; exit 1"], 5, 1, id="sleep and exit"),
        pytest.param(["sh", "-c", "echo a && sleep 2 && false"], 2, 1, id="last command fails"),
        pytest.param(["sh", "-c", "false || sleep 4"], 4, 0, id="or after failure"),
        pytest.param(["sh", "-c", "true || sleep 4"], 0, 0, id="or after success"),
        pytest.param(["sh", "-c", "sleep 1\nexit 2; sleep 9"], 1, 2, id="exit ends the script"),
        pytest.param(["sh", "-c", "sleep 1; sleep inf; false"], None, 0, id="endless sleep ends the script"),
        pytest.param(["sh", "-c", "while true; do date; sleep 1; done"], None, 0, id="a loop"),
        pytest.param(["sh", "-c", "echo 'a; exit 3'"], 0, 0, id="quotes"),
        pytest.param(["sh", "-c", "echo 'a"], 0, 2, id="unterminated quotation"),
        pytest.param(["sh"], 0, 0, id="a shell without input"),
    ],
)
def test_simulated_commands_have_duration_and_exit_code(argv, seconds, code):
    program = parsed_program(*argv)
    assert (program.seconds, program.exit_code) == (seconds, code)


@pytest.mark.parametrize(
    ("argv", "seconds", "code"),
    [
        pytest.param(
            ["python3", "-c", "import time; time.sleep(3); 1 / 0"], 3, 1, id="a script of Python fails"
        ),
        pytest.param(["python", "-c", "import sys; sys.exit(4)"], 0, 4, id="a script of Python exits"),
        pytest.param(["python", "-c", LOG_GENERATOR], None, 0, id="a script of Python without an end"),
    ],
)
def test_python_scripts_have_duration_and_exit_code(argv, seconds, code):
    program = parsed_program(*argv, image="python:3.12")
    assert (program.seconds, program.exit_code) == (seconds, code)


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["nginx", "-g", "daemon off;"], id="a server"),
        pytest.param(["sh", "-c", "make && true"], id="an unknown command in a script"),
    ],
)
def test_unknown_commands_are_not_simulated(argv):
    assert parsed_program(*argv, image="example.com/app:1") is None


@pytest.mark.parametrize(
    ("image", "script", "code"),
    [
        ("example.com/app:1", "cat /config/app.yaml", 0),
        ("example.com/app:1", "test -f /config/app.yaml", 1),
        ("example.com/app:1", "test -f /app/app.yaml", 0),
        ("busybox", "cat /config/app.yaml", 1),
        ("busybox", "test -f /config/app.yaml", 1),
        ("registry.example.com/library/alpine:3", "[ -e /none/x ]", 1),
        ("alpine", "[ -f /etc/alpine-release ]", 0),
        ("debian:12-slim", "[ -d /usr ]", 0),
        ("busybox", "cat /etc/none", 1),
        ("busybox", "ls /etc/none.d", 1),
        ("busybox", "wc -l < /etc/none", 1),
        ("busybox", "cat /usr/share/zoneinfo/UTC", 1),
        ("busybox", "cat /etc/network/interfaces && ls /etc /usr/share", 0),
        ("busybox", "mkdir /etc/none && echo x > /etc/none/a && cat /etc/none/a", 0),
        ("alpine:3.22", "cat /etc/none/x", 1),
        ("alpine:3.22", ". /etc/none.sh", 2),
        ("alpine:3.22", "cat /etc/apk/repositories", 0),
        ("python:3.13-slim", "cat /etc/none", 1),
        ("python:3.13-slim", "cat /etc/debian_version /usr/share/zoneinfo/UTC /opt/any", 0),
        ("python:3.13-alpine", "cat /etc/debian_version", 1),
        ("node:24", "cat /usr/share/none", 1),
        ("example.com/python:3", "cat /etc/none", 0),
        ("redis:8", "cat /etc/none", 0),
    ],
)
def test_image_of_a_system_has_files_in_its_folders_only(image, script, code):
    assert parsed_program("sh", "-c", script, image=image).exit_code == code


@pytest.mark.parametrize(
    ("image", "script", "code"),
    [
        ("busybox", "echo x > /data/out", 1),
        ("busybox", "mkdir /data && echo x > /data/out", 0),
        ("busybox", "mkdir -p /data/a && echo x > /data/a/out", 0),
        ("busybox", "mkdir /data/a", 1),
        ("busybox", "echo x > /tmp/a/out", 1),
        ("busybox", "echo x > /tmp/out", 0),
        ("busybox", "echo x > /out", 0),
        ("busybox", "echo x > /etc/out", 0),
        ("busybox", "echo x > /home/out", 0),
        ("busybox", "echo x > /mnt/out", 1),
        ("busybox", "ls /opt", 1),
        ("busybox", "touch /volume/out /volumes/out", 1),
        ("busybox", "touch /volume/out /work/out /work/dir/out /messages/x", 0),
        ("alpine:3.22", "echo x > /data/out", 1),
        ("alpine:3.22", "echo x > /mnt/out && ls /opt /srv /media /run", 0),
        ("debian:12", "bash -c 'echo x > /data/out'", 1),
        ("debian:12", "echo x > /mnt/out && ls /opt /boot", 0),
        ("example.com/app:1", "echo x > /data/out", 0),
        ("example.com/app:1", "echo x > /tmp/none/out", 1),
    ],
)
def test_script_writes_into_folders_that_the_image_has(image, script, code):
    container = {
        "image": image,
        "command": ["sh", "-c", f"{script}"],
        "workingDir": "/work/dir",
        "terminationMessagePath": "/messages/log",
        "volumeMounts": [{"name": "v", "mountPath": "/volume"}],
    }
    assert (program_of(IMAGES, container).exit_code != 0) is bool(code)


def test_volume_in_a_folder_of_the_system_may_have_any_file():
    mount = {"name": "v", "mountPath": "/etc/own"}
    container = {"image": "busybox", "command": ["cat", "/etc/own/x"], "volumeMounts": [mount]}
    assert program_of(IMAGES, container).exit_code == 0
    assert program_of(IMAGES, {**container, "command": ["cat", "/etc/owner"]}).exit_code == 1


def test_script_of_an_image_is_not_simulated():
    assert parsed_program("sh", "/app/start.sh", image="example.com/app:1") is None


@pytest.mark.parametrize(
    ("image", "known"),
    [
        ("registry.k8s.io/pause:3.10", True),
        ("pause", True),
        ("registry.k8s.io/pause-amd64:3.1", True),
        ("nginx", False),
        ("example.com/unpause:1", False),
    ],
)
def test_pause_images_run_forever(image, known):
    assert (program_of(IMAGES, {"image": image}) == RunBehavior(seconds=None)) is known


def test_arguments_without_command_are_the_command():
    assert program_of(IMAGES, {"image": "busybox", "args": ["sleep", "7"]}).seconds == 7


@pytest.mark.parametrize(
    "script",
    [
        'end=$(( $(date +%s) + 300 )); while [ "$(date +%s)" -lt $end ]; do sleep 5; done; exit 3',
        "until (( SECONDS >= 300 )); do sleep 5; done; exit 3",
        "awk 'BEGIN{exit}'; s=$EPOCHSECONDS; while (( EPOCHSECONDS < s + 300 )); do sleep 5; done; exit 3",
    ],
)
def test_loop_ends_at_the_time_that_it_waits_for(script):
    program = parsed_program("bash", "-c", script, image="debian")
    assert (program.seconds, program.exit_code) == (300, 3)


@pytest.mark.thorough
@pytest.mark.parametrize("script", ["date", 'echo "$(date) alive"', "echo $SECONDS"])
def test_loop_that_only_prints_the_time_is_endless(script):
    assert (
        parsed_program("bash", "-c", f"while true; do {script}; sleep 5; done", image="debian").seconds
        is None
    )


@pytest.mark.parametrize(("size", "is_certain"), [(3_000, True), (3_000_000, False)])
def test_data_that_a_script_moves_count_as_its_commands(size, is_certain):
    script = f"for i in 1 2 3 4; do head -c {size} /dev/urandom | base64 | wc -c; done; exit 3"
    program = parsed_program("sh", "-c", script)
    assert (program.is_certain, program.exit_code) == (is_certain, 3 if is_certain else 0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "search",
    [
        pytest.param("echo $s | grep -cE 'x{1,90}y'", id="grep"),
        pytest.param("echo $s | sed -nE '/x{1,90}y/p'", id="sed"),
        pytest.param("""echo $s | awk '{while (k++ < 20) gsub(/x*x*x*y/, "")}'""", id="awk"),
        pytest.param("expr $s : 'x\\{1,90\\}y' : 'x'", id="expr"),
        pytest.param("[[ $s =~ x{1,90}y ]]", id="a condition"),
        pytest.param("t=${s//[x]+(x)+(x)+(x)+(x)[x]y/}" + "; t=${s/*[x]*[x]y/}" * 4, id="a replacement"),
    ],
)
@pytest.mark.parametrize(("size", "is_certain"), [(100, True), (90_000, False)])
def test_searches_of_a_script_count_as_its_commands(search, size, is_certain):
    text = f"shopt -s extglob; s=$(seq 1 {size} | tr '0-9' 'x' | tr -d '\\n'); s=${{s:0:{size}}}"
    script = f"{text}; for i in {{1..20}}; do {search}; done > /dev/null; exit 3"
    assert parsed_program("bash", "-c", script, image="debian").is_certain is is_certain


@pytest.mark.thorough
@pytest.mark.parametrize("body", ['s = s "x"', "n++", 'gsub(/x/, "y")'])
def test_awk_that_never_ends_is_executed_in_parts(body):
    host, execution = start_invocation(
        invocation_of(
            IMAGES,
            {"image": "busybox", "command": ["awk", f"BEGIN {{while (1) {{{body}}}}}"]},
            CommandContext(),
        ),
        FileSystem({}, is_partial=True),
    )
    with closing(execution):
        effects = [next(execution) for _ in range(1000)]
    assert all(isinstance(effect, CommandStart) for effect in effects)
    assert host.elapsed == 0


def test_termination_message_has_the_last_bytes_of_the_file():
    program = parsed_program("sh", "-c", "seq 1 2000 > /dev/termination-log")
    assert (len(program.message), program.message[-10:]) == (4096, "1999\n2000\n")


@pytest.mark.parametrize("script", ["exit $((RANDOM % 200))", "exit $(od -An -tu1 -N1 /dev/urandom)"])
def test_random_numbers_differ_between_pods(script):
    codes = [
        program_of(
            IMAGES,
            {"image": "debian", "command": ["sh", "-c", script]},
            CommandContext(hostname=f"job-{number}"),
        ).exit_code
        for number in range(8)
    ]
    assert len({*codes}) > 2


@pytest.mark.parametrize("path", ["/dev/termination-log", "/dev/other-log"])
def test_every_user_writes_the_message_of_a_container(path):
    script = f"echo DONE > {path}"
    container = {"image": "busybox", "command": ["sh", "-c", script], "terminationMessagePath": path}
    behavior = program_of(IMAGES, container, CommandContext(identity=ContainerUser(1000, 0, (), None)))
    assert (behavior.exit_code, behavior.message) == (0, "DONE\n")


@pytest.mark.parametrize(("path", "may_exist"), [("/proc/1/status", True), ("/proc/12/status", False)])
def test_only_the_first_process_may_have_files_that_are_not_computed(path, may_exist):
    assert FileSystem({}, is_partial=True).unknown.may_exist(path) is may_exist


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("seq 3000 | while read x; do :; done; sleep 1; exit 3", id="works at first"),
        pytest.param("for i in $(seq 3000); do sleep 1; done; exit 3", id="sleeps again and again"),
        pytest.param("i=0; while [ $i -lt 9000 ]; do i=$((i+1)); sleep 1; done; exit 3", id="counts to an end"),
        pytest.param("i=0; while true; do i=$((9000/(9000-i))); i=$((i+1)); sleep 1; done", id="fails at last"),
        pytest.param("i=0; while true; do [ $i -gt 999 ] && exit 3; i=$((i+1)); sleep 1; done", id="exits at last"),
        pytest.param("trap 'exit $i' TERM; while true; do i=$((i+1)); sleep 1; done", id="ends by a trap"),
    ],
)  # fmt: skip
def test_script_that_does_too_much_in_advance_does_not_count_as_endless(script):
    assert not parsed_program("sh", "-c", script).is_certain


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("while true; do date; sleep 5; done", id="prints the time"),
        pytest.param("i=0; while true; do echo $i: $(date); i=$((i+1)); sleep 1; done", id="counts"),
        pytest.param("i=0; while :; do i=$(expr $i + 1); [ $i -gt 5 ] && echo $i; sleep 1; done", id="counts by expr"),
        pytest.param("i=0; until false; do if [ $i = 3 ]; then echo 3; fi; i=$((i%7+1)); sleep 1; done", id="has a condition"),
        pytest.param("trap 'echo $(date); exit 4' TERM; while true; do sleep 1; done", id="has a trap"),
        pytest.param("while true; do echo x >> /tmp/log; sleep 1; done", id="writes"),
    ],
)  # fmt: skip
def test_loop_that_nothing_in_it_can_leave_is_endless(script):
    program = parsed_program("sh", "-c", script)
    assert (program.seconds, program.is_certain) == (None, True)
