"""agnhost, the image of the Kubernetes tests, in simulated containers."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Host, Output, Sleep, UnknownProgram
from mockube.container_runtime.simulated.shell.programs.agnhost import FOREVER
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

FILES = {
    "/v": FileEntry(mode=0o777, file_system="tmpfs"),
    "/map": FileEntry(mode=0o2777, group=1001, read_only=True),
    "/map/key": FileEntry(data=b"value", mode=0o440, group=1001, read_only=True),
    "/etc/hosts": FileEntry(data=b"10.1.2.3\tweb\n"),
    "/etc/resolv.conf": FileEntry(data=b"search a.local b.local\nnameserver 10.0.0.10\n"),
}


def run(*arguments, program="/agnhost"):
    """Return the output, the exit code (None if it keeps running), and the elapsed time."""
    now = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    host = Host(hostname="web", files=FileSystem(FILES), now=lambda: now, programs=PROGRAMS)
    running, written = run_command(host, (program, *arguments), {}), b""
    while True:
        try:
            effect = next(running)
        except StopIteration as ended:
            return written.decode(), ended.value, host.elapsed
        if isinstance(effect, Sleep) and effect.seconds == FOREVER:
            return written.decode(), None, host.elapsed
        written += effect.data if isinstance(effect, Output) else b""
        host.elapsed += effect.seconds if isinstance(effect, Sleep) else 0


@pytest.mark.parametrize(
    ("argv", "written"),
    [
        (("entrypoint-tester", "a", "b"), "[/agnhost entrypoint-tester a b]\n"),
        (("dns-suffix",), "a.local,b.local\n"),
        (("dns-server-list",), "10.0.0.10\n"),
        (("etc-hosts",), "10.1.2.3\tweb\n\n"),
        (("mounttest", "--fs_type=/v"), 'mount type of "/v": tmpfs\n'),
        (("mounttest", "--fs_type=/etc"), 'mount type of "/etc": 2035054128\n'),
        (("mounttest", "--file_mode=/v"), 'mode of file "/v": drwxrwxrwx\n'),
        (("mounttest", "--file_mode=/map"), 'mode of file "/map": dgrwxrwxrwx\n'),
        (("mounttest", "--file_mode", "/map/key"), 'mode of file "/map/key": -r--r-----\n'),
        (("mounttest", "--file_perm=/v"), 'perms of file "/v": -rwxrwxrwx\n'),
        (
            ("mounttest", "--file_owner=/map/key"),
            'owner UID of "/map/key": 0\nowner GID of "/map/key": 1001\n',
        ),
        (("mounttest", "--file_content=/map/key"), 'content of file "/map/key": value\n'),
        (
            ("mounttest", "--file_perm=/v/f", "--new_file_0660=/v/f"),
            'content of file "/v/f": mount-tester new file\n\nperms of file "/v/f": -rw-rw----\n',
        ),
    ],
)
def test_agnhost_prints_output(argv, written):
    assert run(*argv) == (written, 0, 0)


def test_agnhost_prints_its_program_name():
    assert run("entrypoint-tester", program="/agnhost-2")[0] == "[/agnhost-2 entrypoint-tester]\n"


def test_agnhost_reports_missing_file():
    message = 'error reading file content for "/nope": no such file or directory\n'
    assert run("mounttest", "--file_content=/nope") == (message, 1, 0)


def test_mounttest_reads_file_until_expected_content():
    written, code, seconds = run("mounttest", "--file_content_in_loop=/map/key", "--retry_time=5")
    assert written.count("content of file") == written.count("Unexpected content. Expected: mount-") == 3
    assert (code, seconds) == (0, 6)
    flags = "--retry_time=3", "--break_on_expected_content=false"
    written, code, _ = run("mounttest", "--file_content_in_loop=/nope", *flags)
    assert written == "Error reading file /nope: open /nope: no such file or directory, retrying\n" * 2
    assert code == 1
    written, *_ = run("mounttest", "--new_file_0644=/v/f", "--file_content_in_loop=/v/f")
    assert written.count("content of file") == 2


def test_logs_generator_writes_requested_lines():
    written, code, seconds = run("logs-generator", "--log-lines-total", "4", "--run-duration", "2s")
    lines = written.splitlines()
    assert [line.split()[4] for line in lines] == ["0", "1", "2", "3"]
    assert lines[1].startswith("I0102 03:04:05.500000       1 logs_generator.go:76] 1 ")
    assert (code, seconds) == (0, 2)
    assert run("logs-generator")[1] == 255


def test_agnhost_server_that_is_not_simulated_says_so():
    written, code, _ = run("webhook", "--http-port=8080")
    assert (
        written == "mockube: agnhost webhook is simulated: it runs until it is stopped and serves nothing\n"
    )
    assert code is None


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (("netexec",), ["Started HTTP server on port 8080", "Started UDP server on port  8081"]),
        (("netexec", "--udp-port", "-1", "--http-port=80"), ["Started HTTP server on port 80"]),
        (("serve-hostname",), ["Serving on port 9376."]),
        (("guestbook",), []),
    ],
)
def test_agnhost_server_logs_its_start(argv, lines):
    written, code, _ = run(*argv)
    written_lines = [line.partition("       1 log.go:245] ") for line in written.splitlines()]
    assert [text for _, _, text in written_lines] == lines
    assert all(head.startswith("I") for head, _, _ in written_lines)
    assert code is None


def test_agnhost_pauses_without_arguments_of_its_own():
    assert run("pause") == ("Paused\nSignals registered\n", None, 0)


@pytest.mark.parametrize("argv", [(), ("tcp-reset",)])
def test_unsupported_agnhost_command_is_refused(argv):
    with pytest.raises(UnknownProgram):
        run(*argv)


def test_command_that_agnhost_does_not_have_fails():
    output, code, _ = run("nosuch", "--port=80")
    assert (output, code) == ('Error: unknown command "nosuch" for "app"\n', 1)
