"""Runs a script in real shells, in a folder of its own, and in the simulated shell, in files that are the same."""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Host, Input, Output, RepeatedIteration, Sleep
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

FILES = {
    "a.txt": "one\ntwo\nthree\n",
    "b.txt": "alpha beta gamma\nbeta 12\n\ngamma 3 beta\n",
    "numbers": "10\n9\n2\n33\n2\n",
    "empty": "",
    "dir/x.txt": "x\n",
    "dir/y z.txt": "y z\n",
    "dir/.hidden": "hidden\n",
    "table": "bob:x:1001:users\nalice:y:17:admins\ncarol::250:users\n",
    "lib.sh": 'lib_value=loaded\nlib() { echo "lib $1"; return 4; }\n',
}
SCRIPTS = {"run.sh": '#!/bin/sh\necho "run $# $1"\nexit 6\n'}
FOLDER = "/w"
NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
SECONDS = 10
USERS_OF_MACHINE = {"w", "who", "users"}
"""Programs that list the users of this machine."""
NOTICE = re.compile(r": line \d+: +\d+ [A-Z]|No record of process")
"""What a shell writes with the id of a process."""
MESSAGE = re.compile(r"(?:sh|environment|main|(?:\./)?\w+\.(?:sh|txt)): |(?:[a-z]+|\.): usage: |trap: ")
MAX_EFFECTS = 400_000


@dataclass(frozen=True)
class Result:
    code: int
    output: str
    files: tuple[tuple[str, str], ...]
    errors: str = ""
    messages: tuple[str, ...] = ()
    """The lines of the standard error that the shell has written itself."""
    trace: str = ""
    """Of the simulated shell, a digest of all effects, messages and counted work, to notice a change that is not meant."""

    def comparable(self):
        return self.code, self.output, self.files, self.messages


def messages_of(errors):
    return tuple(line for line in errors.splitlines() if MESSAGE.match(line) and not NOTICE.search(line))


class RealShells:
    """dash, busybox ash and bash, with busybox' programs; all scripts run in the same folder, which is made anew."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        self.busybox = shutil.which("busybox")
        names = subprocess.run(
            [self.busybox, "--list"], capture_output=True, text=True, check=True
        ).stdout.split()
        for name in set(names) - USERS_OF_MACHINE:
            (self.programs / name).symlink_to(self.busybox)
        self.commands = {
            "dash": [shutil.which("dash"), "-c"],
            "ash": [self.busybox, "sh", "-c"],
            "bash": [shutil.which("bash"), "-c"],
        }

    def run(self, shell, script):
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            root = Path(scratch) / "w"
            _fill(root)
            environment = {"PATH": str(self.programs), "HOME": str(root), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
            with subprocess.Popen(
                [*self.commands[shell], script, "sh"],
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            ) as process:
                try:
                    output, errors = process.communicate(timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
                    return None
            code = process.returncode if process.returncode >= 0 else 128 - process.returncode
            output, errors = (
                data.decode("utf-8", "replace").replace(str(root), FOLDER) for data in (output, errors)
            )
            return Result(code, output, _tree(root), errors, messages_of(errors))


def _fill(root):
    for name, text in {**FILES, **SCRIPTS}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name in SCRIPTS else 0o644)


def _tree(root):
    entries = []
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            entries.append((name, f"-> {path.readlink()}"))
        elif stat.S_ISDIR(mode):
            entries.append((name, "/"))
        elif stat.S_ISREG(mode):
            entries.append((name, path.read_bytes().decode("utf-8", "replace")))
    return tuple(entries)


def simulated_host():
    entries = {
        f"{FOLDER}/{name}": FileEntry(
            data=text.encode(), mode=0o755 if name in SCRIPTS else 0o644, modified=NOW.timestamp() - 1
        )
        for name, text in {**FILES, **SCRIPTS}.items()
    }
    return Host(
        hostname="web-1",
        files=FileSystem({**entries, "/tmp": FileEntry(mode=0o777)}),
        now=lambda: NOW,
        programs=PROGRAMS,
    )


def run_simulated(script, shell="sh"):
    host = simulated_host()
    environment = {"HOME": FOLDER, "PATH": "/bin", "TZ": "UTC"}
    execution = run_command(host, [shell, "-c", script, "sh"], environment, FOLDER)
    written = {1: bytearray(), 2: bytearray()}
    code = None
    trace = hashlib.sha256()
    for _ in range(MAX_EFFECTS):
        try:
            effect = next(execution)
        except StopIteration as stop:
            code = stop.value
            break
        trace.update(repr(effect).encode())
        if isinstance(effect, Output):
            written[effect.descriptor] += effect.data
        elif isinstance(effect, Sleep):
            if effect.seconds == float("inf"):
                break
            host.elapsed += effect.seconds
        elif isinstance(effect, RepeatedIteration):
            break
        else:
            assert not isinstance(effect, Input) or effect.limit
    output, errors = (written[descriptor].decode("utf-8", "replace") for descriptor in (1, 2))
    counted = (code, host.work, host.changes, host.moved_bytes, host.time_reads, host.memory.steps)
    trace.update(repr(counted).encode())
    return Result(
        -1 if code is None else code,
        output,
        _simulated_tree(host.files),
        errors,
        messages_of(errors),
        trace.hexdigest()[:6],
    )


def _simulated_tree(files):
    entries = []
    for path in files.walk(FOLDER) if files.exists(FOLDER) else ():
        if path == FOLDER:
            continue
        entry = files.link_entry(path)
        name = path.removeprefix(f"{FOLDER}/")
        text = (
            f"-> {entry.target}"
            if entry.target
            else "/"
            if entry.data is None
            else entry.data.decode("utf-8", "replace")
        )
        entries.append((name, text))
    return tuple(sorted(entries, key=lambda entry: entry[0].split("/")))
