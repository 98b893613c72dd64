"""systemctl: the units of a node. The kubelet and the container runtime can be stopped; the other ones only run."""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from mockube.container_runtime.node_journal import JournalEntry, JournalQuery, line_of, select, unit_name
from mockube.container_runtime.simulated.node.services import ServiceError, ask
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Process,
    ProgramUsageError,
    Run,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from .tables import human_duration

Work = Generator[Effect, bytes | None, Any]
_FOLDERS: Final = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system")
_WANTED: Final = "/etc/systemd/system/multi-user.target.wants"
_STOPPABLE: Final = frozenset({"kubelet.service", "containerd.service"})
_OTHERS: Final[Mapping[str, str]] = {
    "cron.service": "Regular background program processing daemon", "dbus.service": "D-Bus System Message Bus",
    "ssh.service": "OpenBSD Secure Shell server", "systemd-journald.service": "Journal Service",
    "systemd-logind.service": "User Login Management",
}  # fmt: skip
"""The units that always run, with their descriptions."""
_INACTIVE, _NOT_INSTALLED, _UNKNOWN = 3, 5, 4
_LINES: Final = 10
_CHANGES: Final = frozenset(
    {"start", "stop", "restart", "try-restart", "reload-or-restart", "reload", "kill"}
)
_LETTERS: Final = "lqn:faTo:p:t:rHM:s:"
_LONG: Final = {
    "no-pager": "r", "full": "l", "quiet": "q", "lines": "n", "now": "N", "all": "a", "type": "t", "output": "o", "property": "p", "value": "V",
    "no-legend": "L", "force": "f", "state": "S", "system": "Y", "plain": "A", "no-block": "B", "signal": "s", "failed": "F", "version": "v",
}  # fmt: skip


def systemctl(process: Process) -> Run:
    options = parse_options(process.arguments, _LETTERS, long=_LONG)
    if "v" in options:
        yield write_text("systemd 252 (252.38-1~deb12u1)\n")
        return 0
    verb, *names = options.arguments or ["list-units"]
    try:
        if verb in _CHANGES:
            changed: int = yield from _change(process, verb, names)
            return changed
        run = _VERBS.get(verb)
        if run is None:
            raise ProgramUsageError(f"Unknown command verb {verb}.")
        code: int = yield from run(process, options, [unit_name(name) for name in names])
    except ServiceError as error:
        yield process.report(str(error))
        return 1
    return code


def unit_file(files: FileSystem, unit: str) -> str:
    """Return the path of the file of a unit; "" if there is none."""
    return next((path for folder in _FOLDERS if files.exists(path := f"{folder}/{unit}")), "")


def drop_ins(files: FileSystem, unit: str) -> list[str]:
    """Return the drop-ins of a unit in the order in which they apply."""
    found: dict[str, str] = {}
    for folder in reversed(_FOLDERS):
        path = f"{folder}/{unit}.d"
        if files.exists(path) and files.entry(path).is_directory:
            found |= {name: f"{path}/{name}" for name in files.children(path) if name.endswith(".conf")}
    return [found[name] for name in sorted(found)]


def _require_names(verb: str, names: Sequence[str]) -> None:
    if not names:
        raise ProgramUsageError(f"Too few arguments: {verb} needs the name of a unit.")


def _change(process: Process, verb: str, names: Sequence[str]) -> Work:
    _require_names(verb, names)
    code = 0
    for unit in map(unit_name, names):
        action = {"try-restart": "restart", "reload-or-restart": "restart", "kill": "restart"}.get(verb, verb)
        if not unit_file(process.host.files, unit) and unit not in _OTHERS:
            yield process.report(f"Failed to {verb} {unit}: Unit {unit} not found.")
            code = _NOT_INSTALLED
        elif unit in _STOPPABLE and action != "reload":
            yield from ask(process, "unit.change", {"unit": unit.removesuffix(".service"), "action": action})
        elif action == "reload" and unit in _STOPPABLE:
            yield process.report(
                f"Failed to reload {unit}: Job type reload is not applicable for unit {unit}."
            )
            code = 1
        elif action == "stop":
            yield process.report(
                f"Failed to stop {unit}: only kubelet and containerd of a simulated node can be stopped."
            )
            code = 1
    return code


def _states(process: Process) -> Work:
    return (yield from ask(process, "units"))


def _active(states: Mapping[str, Any], files: FileSystem, unit: str) -> str:
    """Return the word for a unit: active, inactive, activating or unknown."""
    if unit in _OTHERS:
        return "active"
    if unit in _STOPPABLE and unit_file(files, unit):
        state = states[unit.removesuffix(".service")]["state"]
        return {"stopped": "inactive", "failed": "activating"}.get(state, "active")
    return "inactive" if unit_file(files, unit) else "unknown"


def _is_active(process: Process, options: ProgramOptions, names: Sequence[str]) -> Work:
    _require_names("is-active", names)
    states = yield from _states(process)
    words = [_active(states, process.host.files, unit) for unit in names]
    if "q" not in options:
        yield write_text("".join(f"{'inactive' if word == 'unknown' else word}\n" for word in words))
    if "active" in words:
        return 0
    return _UNKNOWN if words == ["unknown"] else _INACTIVE


def _is_failed(process: Process, _: ProgramOptions, names: Sequence[str]) -> Work:
    states = yield from _states(process)
    words = [_active(states, process.host.files, unit) for unit in names]
    yield write_text("".join(f"{word}\n" for word in words))
    return 1


def _enabled(files: FileSystem, unit: str) -> str:
    if unit in _OTHERS:
        return "enabled"
    return "enabled" if files.has(f"{_WANTED}/{unit}") else "disabled"


def _is_enabled(process: Process, options: ProgramOptions, names: Sequence[str]) -> Work:
    _require_names("is-enabled", names)
    files, code = process.host.files, 1
    for unit in names:
        if unit not in _OTHERS and not unit_file(files, unit):
            yield process.report(f"Failed to get unit file state for {unit}: No such file or directory")
            continue
        word = _enabled(files, unit)
        code = 0 if word == "enabled" else code
        if "q" not in options:
            yield write_text(f"{word}\n")
    return code


def _enable(process: Process, options: ProgramOptions, names: Sequence[str]) -> Work:
    return (yield from _set_enabled(process, options, names, verb="enable"))


def _disable(process: Process, options: ProgramOptions, names: Sequence[str]) -> Work:
    return (yield from _set_enabled(process, options, names, verb="disable"))


def _set_enabled(process: Process, options: ProgramOptions, names: Sequence[str], *, verb: str) -> Work:
    _require_names(verb, names)
    files = process.host.files
    for unit in names:
        path = unit_file(files, unit)
        link = f"{_WANTED}/{unit}"
        if not path and unit not in _OTHERS:
            yield process.report(f"Failed to {verb} unit: Unit file {unit} does not exist.")
            return 1
        if path and verb == "enable" and not files.has(link):
            files.link(link, path, modified=process.host.now_running(is_shown=True).timestamp())
            yield process.report(f"Created symlink {link} → {path}.")
        elif path and verb == "disable" and files.has(link):
            files.remove(link)
            yield process.report(f"Removed {link}.")
        if "N" in options:
            yield from _change(process, "start" if verb == "enable" else "stop", [unit])
    return 0


def _daemon_reload(_: Process, __: ProgramOptions, ___: Sequence[str]) -> Work:
    return 0
    yield


def _cat(process: Process, _: ProgramOptions, names: Sequence[str]) -> Work:
    _require_names("cat", names)
    files = process.host.files
    for unit in names:
        path = unit_file(files, unit)
        if not path:
            yield process.report(f"No files found for {unit}.")
            return 1
        for each in (path, *drop_ins(files, unit)):
            yield write_text(f"# {each}\n{files.read(each).decode('utf-8', 'replace')}\n")
    return 0


def _list(process: Process, options: ProgramOptions, _: Sequence[str]) -> Work:
    states, files = (yield from _states(process)), process.host.files
    units = sorted({*_OTHERS, *(unit for unit in _STOPPABLE if unit_file(files, unit))})
    rows = [(unit, "loaded", _active(states, files, unit), _description(files, unit)) for unit in units]
    if options.arguments[:1] == ["list-unit-files"]:
        lines = [f"{unit:<30}{_enabled(files, unit):<10}enabled\n" for unit in units]
        yield write_text("".join(["UNIT FILE                     STATE     PRESET\n", *lines]))
        return 0
    lines = [
        f"  {unit:<26}{load:<7}{active:<11}{'running' if active == 'active' else 'auto-restart':<13}{text}\n"
        for unit, load, active, text in rows
        if active != "inactive" or "a" in options
    ]
    title = f"  {'UNIT':<26}{'LOAD':<7}{'ACTIVE':<11}{'SUB':<13}DESCRIPTION\n"
    yield write_text("".join([title, *lines, f"\n{len(lines)} loaded units listed.\n"]))
    return 0


def _description(files: FileSystem, unit: str) -> str:
    if unit in _OTHERS:
        return _OTHERS[unit]
    text = files.read(unit_file(files, unit)).decode("utf-8", "replace")
    return next(
        (line[len("Description=") :] for line in text.splitlines() if line.startswith("Description=")), unit
    )


def _show(process: Process, options: ProgramOptions, names: Sequence[str]) -> Work:
    states, files = (yield from _states(process)), process.host.files
    for unit in names:
        active = _active(states, files, unit)
        state = states.get(unit.removesuffix(".service"), {})
        properties = {
            "Id": unit, "LoadState": "not-found" if active == "unknown" else "loaded", "UnitFileState": _enabled(files, unit),
            "ActiveState": "inactive" if active == "unknown" else active, "MainPID": str(state.get("pid", 0)),
            "SubState": {"active": "running", "activating": "auto-restart"}.get(active, "dead"),
        }  # fmt: skip
        names_of_properties = {name for text in options.all("p") for name in text.split(",")}
        selected = {
            name: value
            for name, value in properties.items()
            if not names_of_properties or name in names_of_properties
        }
        yield write_text(
            "".join(
                f"{value}\n" if "V" in options else f"{name}={value}\n" for name, value in selected.items()
            )
        )
    return 0


def _status(process: Process, options: ProgramOptions, names: Sequence[str]) -> Work:
    _require_names("status", names)
    states, files, code = (yield from _states(process)), process.host.files, 0
    for number, unit in enumerate(names):
        active = _active(states, files, unit)
        if active == "unknown":
            yield process.report(f"Unit {unit} could not be found.")
            code = _UNKNOWN
            continue
        entries: list[JournalEntry] = msgspec.convert(
            (yield from ask(process, "journal")), list[JournalEntry]
        )
        lines = options.get("n", str(_LINES))
        count = int(lines) if lines.isdecimal() and len(lines) < _LINES else _LINES
        lines_of_journal = select(entries, JournalQuery(units=(unit,), lines=count))
        state = states.get(unit.removesuffix(".service"), {})
        text = _status_text(process, unit, active, state)
        journal = "".join(f"{line_of(entry, process.host.name)}\n" for entry in lines_of_journal)
        yield write_text(("\n" if number else "") + text + (f"\n{journal}" if journal else ""))
        code = code or (0 if active == "active" else _INACTIVE)
    return code


def _status_text(process: Process, unit: str, active: str, state: Mapping[str, Any]) -> str:
    files = process.host.files
    path = unit_file(files, unit) or f"/usr/lib/systemd/system/{unit}"
    enabled = _enabled(files, unit)
    sign = "○" if active == "inactive" else "●"
    lines = [
        f"{sign} {unit} - {_description(files, unit)}",
        f"     Loaded: loaded ({path}; {enabled}; preset: enabled)",
    ]
    if inner := drop_ins(files, unit):
        folder = inner[0].rpartition("/")[0]
        lines += [
            f"    Drop-In: {folder}",
            f"             └─{', '.join(each.rpartition('/')[2] for each in inner)}",
        ]
    words = {
        "active": "active (running)",
        "inactive": "inactive (dead)",
        "activating": "activating (auto-restart)",
    }[active]
    result = f" (Result: {state['result']})" if active == "activating" else ""
    lines.append(f"     Active: {words}{result}{_since(process, state)}")
    if unit == "kubelet.service":
        lines.append("       Docs: https://kubernetes.io/docs/")
    if active == "active":
        pid = state.get("pid", 1)
        lines += [
            f"   Main PID: {pid} ({unit.removesuffix('.service')})",
            f"     CGroup: /system.slice/{unit}",
        ]
        if state.get("command"):
            lines.append(f"             └─{pid} {state['command']}")
    elif active == "activating":
        lines.append(
            f"    Process: {state['pid']} ExecStart={state['command']} (code=exited, status={state['status']})"
        )
        lines.append(f"   Main PID: {state['pid']} (code=exited, status={state['status']})")
    return "".join(f"{line}\n" for line in lines)


def _since(process: Process, state: Mapping[str, Any]) -> str:
    if not state.get("since"):
        return ""
    since = datetime.fromisoformat(state["since"])
    seconds = (process.host.now_running(is_shown=True) - since).total_seconds()
    return f" since {since:%a %Y-%m-%d %H:%M:%S} UTC; {human_duration(max(seconds, 1)).replace('About a', '1').replace('An', '1')} ago"


_VERBS: Final[Mapping[str, Callable[[Process, ProgramOptions, Sequence[str]], Work]]] = {
    "status": _status,
    "is-active": _is_active,
    "is-enabled": _is_enabled,
    "is-failed": _is_failed,
    "enable": _enable,
    "disable": _disable,
    "daemon-reload": _daemon_reload,
    "daemon-reexec": _daemon_reload,
    "reset-failed": _daemon_reload,
    "cat": _cat,
    "show": _show,
    "list-units": _list,
    "list-unit-files": _list,
}
