"""`python -m http.server` listens where its arguments say, from its call on."""

from math import inf

import pytest

from mockube.container_runtime.simulated.shell.process import Host, Output, Process, Sleep, UnknownProgram
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.extras.python import http_server
from mockube.extras.python.program import python, python2
from tests.support.shell_scripts import NOW


def called(program, *arguments, environment=None):
    """Return the effects of a program until it sleeps for ever, and the calls that it notes."""
    host = Host(hostname="pod", files=FileSystem(), now=lambda: NOW, programs={}, is_strict=True)
    process = Process(
        host=host,
        argv=["python", *arguments],
        environment=environment or {},
        directory="/srv",
        processes=None,
    )
    effects = []
    for effect in program(process):
        effects.append(effect)
        if isinstance(effect, Sleep) and effect.seconds == inf:
            break
    return effects, host.calls


@pytest.mark.parametrize(
    ("arguments", "port", "root"),
    [
        ([], 8000, "/srv"),
        (["81"], 81, "/srv"),
        (["-d", "/files", "81"], 81, "/files"),
        (["--directory=/files", "--bind=127.0.0.1"], 8000, "/files"),
        (["-b", "10.0.0.1", "-p", "HTTP/1.1", "8080"], 8080, "/srv"),
    ],
)
def test_server_serves_its_folder_at_its_port(arguments, port, root):
    _, (call,) = called(python, "-m", "http.server", *arguments)
    assert {number: behavior.root for number, behavior in call.ports.items()} == {port: root}


def test_server_with_another_word_than_a_port_says_no_ports():
    assert http_server.ports_of(["x"], "/") is None


def test_script_says_no_ports():
    _, (call,) = called(python, "-c", "print(1)")
    assert call.ports is None


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (["-m", "http.server"], {}, b""),
        (["-u", "-m", "http.server"], {}, b"Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...\n"),
        (["-m", "http.server", "81"], {"PYTHONUNBUFFERED": "1"}, b"Serving HTTP on 0.0.0.0 port 81 (http://0.0.0.0:81/) ...\n"),
    ],
)  # fmt: skip
def test_server_without_buffer_says_where_it_listens(arguments, environment, expected):
    effects, _ = called(python, *arguments, environment=environment)
    assert b"".join(effect.data for effect in effects if isinstance(effect, Output)) == expected


def test_old_python_has_its_server_alone():
    _, (call,) = called(python2, "-m", "SimpleHTTPServer", "81")
    assert list(call.ports) == [81]
    with pytest.raises(UnknownProgram, match="python"):
        called(python2, "-c", "print 1")
