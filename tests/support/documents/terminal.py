"""A terminal for the pages: commands in one shell after the other, and long-running commands in separate shells.

It has a home and a working folder, and no environment variables that concern tests or clusters. `make` is that of the
checkout, `python` and `mockube` are those that run the tests.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from mockube.component_base.clock import RealClock
from tests.support.documents.output_comparison import difference, is_same_output
from tests.support.stores.etcd_server import die_with_parent
from tools.packages import ROOT

CLOCK = RealClock()

READER = "/home/you"
"""The home folder in the documentation."""

FULL_SIZE = bool(os.environ.get("MOCKUBE_FULL_SIZE"))
"""Otherwise the example of a thousand pods has a hundred."""
WAIT_TIMEOUT = 60.0
"""Seconds until the expected output must appear."""

GOES_ON = {
    re.compile(r"(make|mockube) up\b(?!.*(--detach|-d\b|--help))"): "is ready",
    re.compile(r"etcd "): "ready to serve client requests",
    re.compile(r"python -m mockube.apiserver\b(?!.*--help)"): "Ready on",
    re.compile(r"python -m mockube.controller_manager\b(?!.*--help)"): "Controllers:",
}
"""Commands that do not end by themselves, and their output after which the next command can be typed elsewhere."""

ONLY_LOOKS = re.compile(
    r"(kubectl (get|describe|top|logs|explain|rollout status)|mockube (status|nodes$)|curl)\b"
)
"""Commands that may be repeated: a person types slower than a test."""

OUR_PLUGINS = ("asyncio", "aiohttp", "randomly", "hypothesispytest", "timeout", "xdist")
"""Pytest plugins of this repository: few readers have them, and each takes time."""

_NOT_HANDED_ON = ("PYTEST_", "MOCKUBE_", "KUBECONFIG", "COVERAGE", "HYPOTHESIS", "XDG_", "MAKE", "ARGS")

_RUN = """set -a
. {state}
{{ {command}
}} </dev/null
code=$?
{{ export -p; printf 'cd %q\\n(exit %d)\\n' "$PWD" "$code"; }} >{state}
exit $code
"""


class UnexpectedOutput(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    printed: str

    def matches_page(self, output):
        """A command may fail only if the page shows its output."""
        return (output is None or is_same_output(output, self.printed)) and (bool(output) or self.code == 0)

    def differs_from(self, output):
        return f"exit code {self.code}\n{difference(output or '', self.printed)}"


class Terminal:
    def __init__(self, home):
        self._home = home
        self.folder = home / "work"
        self._state = home / "state"
        self._tools = home / "bin"
        self._background = []
        for folder in (self.folder, self._tools):
            folder.mkdir(parents=True)
        self._state.touch()
        make = self._tools / "make"
        make.write_text(f'#!/bin/sh\nexec {shutil.which("make")} --no-print-directory -C {ROOT} "$@"\n')
        make.chmod(0o755)
        self._environment = self._environment_of()

    def type(self, command, output):
        """Run the command; fail unless it prints the output of the page."""
        words = next((ready for goes_on, ready in GOES_ON.items() if goes_on.match(command)), None)
        if words is not None:
            self._start(command).wait_for(output, words)
            return
        began = CLOCK.monotonic()
        answer = self._run(command)
        while not answer.matches_page(output):
            if not ONLY_LOOKS.match(command) or CLOCK.monotonic() - began > WAIT_TIMEOUT:
                raise UnexpectedOutput(f"$ {command}\n{answer.differs_from(output)}")
            answer = self._run(command)

    def write(self, name, text):
        """A file in the folder that the page is read in."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def link_program(self, program):
        """Make it a command on the PATH."""
        place = self._tools / program.name
        if not place.exists():
            place.symlink_to(program)

    def close(self):
        for process in self._background:
            process.interrupt()
        if (self._home / ".local").exists():
            self._run("for name in $(mockube list -o name); do mockube down --name $name; done")

    def _run(self, command):
        script = _RUN.format(state=shlex.quote(str(self._state)), command=command)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=100,
        )
        return Answer(done.returncode, done.stdout.replace(str(self._home), READER))

    def _start(self, command):
        process = Background(command, self.folder, self._environment)
        self._background.append(process)
        return process

    def _environment_of(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_HANDED_ON)}
        path = os.pathsep.join([str(self._tools), str(Path(sys.executable).parent), os.environ["PATH"]])
        return inherited | {
            "PATH": path,
            "HOME": str(self._home),
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTEST_ADDOPTS": " ".join(f"-p no:{plugin}" for plugin in OUR_PLUGINS),
            "PODS_DIVIDED_BY": "1" if FULL_SIZE else "10",
            "MOCKUBE_SECURE_PORT": "0",  # a free one, of `mockube up` and of each process by itself
            "MOCKUBE_APISERVER_SECURE_PORT": "0",
            "MOCKUBE_CONTROLLER_MANAGER_SECURE_PORT": "0",
        }


class Background:
    """A command in a shell of its own."""

    def __init__(self, command, folder, environment):
        self._command = command
        self._home = environment["HOME"]
        self._printed = {"stdout": "", "stderr": ""}
        self._more = threading.Condition()
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it makes one system call and takes no lock
        )
        self._readers = [
            threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._printed
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, output, words):
        """Wait until it has printed the words, and compare its output with the page; its log is not compared."""

        def is_printed():
            return words in "".join(self._printed.values()) and (
                not output or is_same_output(output, self._result)
            )

        with self._more:
            if not self._more.wait_for(is_printed, WAIT_TIMEOUT):
                differs = difference(output or "", self._result)
                raise UnexpectedOutput(f"$ {self._command}\n{differs}\n{self._printed['stderr']}")

    @property
    def _result(self):
        return self._printed["stdout"].replace(self._home, READER)

    def interrupt(self):
        """Send Ctrl+C; the command must end."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(WAIT_TIMEOUT)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for reader in self._readers:
                reader.join()

    def _read(self, name):
        with getattr(self._process, name) as lines:
            for line in lines:
                with self._more:
                    self._printed[name] += line
                    self._more.notify_all()
