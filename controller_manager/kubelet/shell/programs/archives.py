"""`tar`, as `kubectl cp` uses it: create, extract and list archives of simulated files."""

import io
import tarfile
from collections.abc import Sequence
from posixpath import normpath
from typing import Final

from mockube.controller_manager.kubelet.shell.filesystem import MAX_BYTES, FileError
from mockube.controller_manager.kubelet.shell.process import Output, Process, Run, read_input, write_text
from mockube.controller_manager.kubelet.shell.programs.inputs import BLOCK, read_all

MAX_ARCHIVE: Final = 2 * MAX_BYTES


def tar(process: Process) -> Run:
    mode, archive, directory, names = _options(process.arguments)
    target_process = process.child(process.argv)
    target_process.directory = process.path(directory)
    files = process.host.files
    if not files.exists(target_process.directory) or not files.entry(target_process.directory).is_directory:
        yield process.error(f"can't change directory to '{directory}': No such file or directory")
        return 1
    if mode == "c":
        return (yield from _create(process, target_process, archive, names))
    data = bytearray()
    if archive == "-":
        while block := (yield from read_input(BLOCK)):
            data += block
            if len(data) > MAX_ARCHIVE:
                yield process.error("the archive is too large")
                return 1
    else:
        data += yield from read_all(process, [archive])
    if mode not in ("x", "t"):
        yield process.error("must specify one of -c, -x, -t")
        return 1
    return (yield from _extract(target_process, bytes(data), names, is_listed=mode == "t"))


def _options(arguments: Sequence[str]) -> tuple[str, str, str, list[str]]:
    mode, archive, directory = "", "-", "."
    names: list[str] = []
    remaining = list(arguments)
    if remaining and remaining[0][:1] != "-":
        remaining[0] = f"-{remaining[0]}"
    while remaining:
        argument = remaining.pop(0)
        if argument == "--":
            return mode, archive, directory, names + remaining
        if argument[:1] != "-" or argument == "-":
            names.append(argument)
            continue
        if argument.startswith("--"):
            continue
        for letter in argument[1:]:
            mode = letter if letter in "cxt" else mode
            if letter == "f" and remaining:
                archive = remaining.pop(0)
            elif letter == "C" and remaining:
                directory = remaining.pop(0)
    return mode, archive, directory, names


def _create(process: Process, target_process: Process, archive: str, names: Sequence[str]) -> Run:
    files, code = process.host.files, 0
    buffer = io.BytesIO()
    errors: list[str] = []
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar_file:
        for name in names:
            path = target_process.path(name)
            if not files.exists(path):
                errors.append(f"{name}: No such file or directory")
                continue
            for member_path in files.walk(path):
                entry = files.entry(member_path)
                member = tarfile.TarInfo(
                    (name.lstrip("/").rstrip("/") + member_path.removeprefix(path)) or "."
                )
                member.mode, member.mtime, member.size = (
                    entry.mode,
                    int(entry.modified),
                    len(entry.data or b""),
                )
                member.type = tarfile.DIRTYPE if entry.is_directory else tarfile.REGTYPE
                tar_file.addfile(member, io.BytesIO(entry.data or b""))
    for error in errors:
        yield process.error(error)
        code = 1
    data = buffer.getvalue()
    if archive != "-":
        files.write(process.path(archive), data)
        return code
    for start in range(0, len(data), BLOCK):
        yield Output(1, data[start : start + BLOCK])
    return code


def _extract(target_process: Process, data: bytes, names: Sequence[str], *, is_listed: bool) -> Run:
    files = target_process.host.files
    selected_names = [normpath(name) for name in names]
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                name = normpath(member.name.lstrip("/"))
                if name.startswith("..") or (selected_names and name not in selected_names):
                    continue
                if is_listed:
                    yield write_text(f"{member.name}\n")
                elif member.isdir():
                    files.make_directory(
                        target_process.path(name), parents=True, modified=float(member.mtime)
                    )
                elif member.isfile() and member.size <= MAX_BYTES:
                    content = archive.extractfile(member)
                    assert content is not None
                    _store(target_process, name, content.read(), member)
    except FileError as error:
        yield target_process.error(str(error))
        return 1
    except (tarfile.TarError, EOFError, OSError, ValueError):
        yield target_process.error("invalid tar magic" if data else "short read")
        return 1
    return 0


def _store(target_process: Process, name: str, content: bytes, member: tarfile.TarInfo) -> None:
    files, path = target_process.host.files, target_process.path(name)
    parent = path.rpartition("/")[0] or "/"
    files.make_directory(parent, parents=True)
    files.write(path, content, modified=float(member.mtime))
    files.change_mode(path, member.mode & 0o777)
