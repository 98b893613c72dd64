"""`mockube top` in a terminal, and where there is none."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from contextlib import contextmanager

import pytest

from mockube.component_base.clock import RealClock
from tests.support.processes.commands import Mockube

pytestmark = pytest.mark.slow
CLOCK = RealClock()
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture(scope="module")
def mockube(tmp_path_factory):
    commands = Mockube(tmp_path_factory.mktemp("top"))
    assert (
        commands.run("up", "--detach", "--name=top", "--profile=minimal", "--simulate-nodes=2").returncode
        == 0
    )
    yield commands
    commands.close()


class Terminal:
    """A terminal in which a command runs."""

    def __init__(self, mockube, arguments, columns, lines):
        self._master, self._slave = pty.openpty()
        self.resize(columns, lines)
        self.settings = termios.tcgetattr(self._slave)
        command = [sys.executable, "-m", "mockube", *arguments]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), self._slave)
        environment = {**mockube.environment, "TERM": "xterm"}
        self.process = subprocess.Popen(command, cwd=mockube.home, env=environment, **streams)
        self.output = ""

    def resize(self, columns, lines):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, text, seconds=60.0):
        """Wait until a text is printed, and return what was printed until then."""
        end = CLOCK.monotonic() + seconds
        while text not in self.output:
            assert CLOCK.monotonic() < end, self.output[-2000:]
            if select.select([self._master], [], [], 0.2)[0]:
                self.output += os.read(self._master, 1 << 16).decode(errors="replace")
        before, _, self.output = self.output.partition(text)
        return before

    def next_screen(self):
        """Return the lines of the next screen that begins."""
        self.wait_for("\x1b[H")
        return self.wait_for("\x1b[J").split("\r\n")

    def press(self, keys):
        os.write(self._master, keys.encode())

    @property
    def is_restored(self):
        return termios.tcgetattr(self._slave) == self.settings

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@contextmanager
def terminal(mockube, *arguments, columns=100, lines=40):
    opened = Terminal(mockube, arguments, columns, lines)
    try:
        yield opened
    finally:
        opened.close()


def test_without_terminal_it_is_printed_once(mockube):
    printed = mockube.run("top", "--name=top")
    assert printed.returncode == 0, printed.stderr
    headings = [
        line.split(":")[0].split(",")[0] for line in printed.stdout.splitlines() if not line.startswith(" ")
    ]
    assert headings == ["Nodes", "Pods", "Queues", "Requests of the last 60 seconds", "Reconciliations"]
    assert "node-1" in printed.stdout
    assert "\x1b" not in printed.stdout


def fits(lines, width, height):
    """Return whether no line of a screen is too long, and some reach its end."""
    lengths = [len(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).strip("\r")) for line in lines]
    return len(lines) <= height and max(lengths) == width - 1


def test_screen_is_refreshed_and_resized(mockube):
    with terminal(mockube, "top", "--name=top", "--interval=0.5") as shown:
        shown.wait_for(ENTER)
        shown.wait_for("Reconciliations")
        shown.wait_for("Nodes: ")  # the next refresh
        shown.resize(60, 12)
        os.kill(shown.process.pid, signal.SIGWINCH)
        # Screens of the former size may still be on their way.
        assert any(fits(shown.next_screen(), 60, 12) for _ in range(20))
        shown.press("q")
        shown.wait_for(LEAVE)
        assert shown.process.wait(20) == 0
        assert shown.is_restored


@pytest.mark.parametrize("end", ["\x03", signal.SIGTERM, signal.SIGINT])
def test_terminal_is_given_back(mockube, end):
    with terminal(mockube, "top", "--name=top") as shown:
        shown.wait_for("Reconciliations")
        assert not shown.is_restored
        if isinstance(end, str):
            shown.press(end)
        else:
            shown.process.send_signal(end)
        shown.wait_for(LEAVE)
        assert shown.process.wait(20) == 0
        assert shown.is_restored


def test_missing_server_is_reported_before_anything_is_shown(mockube):
    with terminal(mockube, "top", "--name=none") as shown:
        shown.wait_for('there is no cluster "none"')
        assert shown.process.wait(20) == 3
        assert ENTER not in shown.output
