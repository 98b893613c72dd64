"""Package managers: apt-get, apt, apk, yum, dnf, microdnf. Known packages add their programs to the container, until it restarts.

A program of a package that is simulated runs; another one is there, and is not simulated. Nobody knows what a package has that is not
in the table, so that its installation is not simulated.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from mockube.container_runtime.simulated.shell.invoking import PROGRAM_DATA
from mockube.container_runtime.simulated.shell.process import (
    Process,
    Program,
    Run,
    Steps,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry

PACKAGES: Final[Mapping[str, str]] = {
    "bash": "bash", "bind-tools": "dig nslookup host nsupdate", "bind-utils": "dig nslookup host nsupdate",
    "bind9-dnsutils": "dig nslookup nsupdate", "bind9-host": "host", "ca-certificates": "update-ca-certificates",
    "coreutils": "", "curl": "curl", "default-mysql-client": "mysql mysqladmin mysqldump", "dnsutils": "dig nslookup nsupdate",
    "findutils": "find xargs", "gawk": "gawk awk", "git": "git", "gnupg": "gpg gpgv", "iproute2": "ip ss tc", "iputils": "ping",
    "iputils-ping": "ping ping6", "inetutils-ping": "ping", "inetutils-telnet": "telnet", "jq": "jq", "less": "less",
    "mariadb-client": "mariadb mariadb-admin mariadb-dump mysql mysqladmin mysqldump", "mysql-client": "mysql mysqladmin mysqldump",
    "nano": "nano", "net-tools": "netstat ifconfig route arp", "netcat": "nc netcat", "netcat-openbsd": "nc netcat",
    "netcat-traditional": "nc netcat", "nmap": "nmap ncat", "nmap-ncat": "nc ncat", "openssl": "openssl", "postgresql-client":
    "psql pg_isready pg_dump pg_restore", "postgresql": "psql pg_isready pg_dump pg_restore", "procps": "ps top free pgrep pkill uptime watch",
    "procps-ng": "ps top free pgrep pkill uptime watch", "python3": "python3", "redis": "redis-cli redis-server", "redis-tools":
    "redis-cli redis-benchmark", "siege": "siege", "apache2-utils": "ab htpasswd", "httpd-tools": "ab htpasswd", "stress": "stress",
    "stress-ng": "stress-ng", "strace": "strace", "tcpdump": "tcpdump", "telnet": "telnet", "traceroute": "traceroute", "tree": "tree",
    "tar": "tar", "unzip": "unzip", "util-linux": "", "vim": "vim vi", "vim-tiny": "vi", "wget": "wget", "which": "which", "zip": "zip",
}  # fmt: skip
"""The programs of well-known packages, in the names of Debian, Alpine and Red Hat."""
_ROOT: Final = 0
_FOLDER: Final = "/usr/bin"
_LISTS: Final = "/var/lib/apt/lists/lock"
"""A file that `apt-get update` leaves."""
_FAILED: Final = 100
_MISSING: Final = re.compile(
    r"[^=<>~@]*[^\w.+=<>~@:-].*|(?:no[-_]?such|does[-_]?not[-_]?exist|doesnt[-_]?exist|non[-_]?existent).*",
    re.IGNORECASE,
)
"""Matches a name that no package has: it has letters that names have not, or it says so itself."""


def _install(process: Process, packages: Sequence[str]) -> None:
    """Add the programs of packages; raise `UnknownProgram` for a package that is not in the table."""
    for package in packages:
        if package.partition("=")[0] not in PACKAGES:
            raise UnknownProgram(f"{process.name}: the package {package}")
    for package in packages:
        for program in PACKAGES[package.partition("=")[0]].split():
            process.host.files.inodes.put(f"{_FOLDER}/{program}", FileEntry(data=PROGRAM_DATA, mode=0o755))


def _missing(packages: Sequence[str]) -> list[str]:
    """Return the packages that are known not to exist."""
    return [package for package in packages if _MISSING.fullmatch(package)]


def _words(process: Process) -> tuple[str, list[str]]:
    """Return the command of a package manager, and its packages, without options."""
    words = [argument for argument in process.arguments if not argument.startswith("-")]
    return (words[0], words[1:]) if words else ("", [])


def apt(process: Process) -> Run:
    command, packages = _words(process)
    if command not in ("update", "install", "clean", "autoremove", "upgrade"):
        raise UnknownProgram(f"{process.name} {command}".rstrip())
    files = process.host.files
    if process.host.user != _ROOT:
        yield from _report_permissions(process, command)
        return _FAILED
    if command == "update":
        files.inodes.put(_LISTS, FileEntry(data=b""))
        yield write_text("Hit:1 http://deb.debian.org/debian stable InRelease\nReading package lists...\n")
    elif command == "install":
        yield write_text(
            "Reading package lists...\nBuilding dependency tree...\nReading state information...\n"
        )
        if not files.knows(_LISTS):  # Images have no lists of packages.
            for package in packages:
                yield process.report(f"E: Unable to locate package {package}")
            return _FAILED
        if missing := _missing(packages):
            for package in missing:
                yield process.report(f"E: Unable to locate package {package}")
            return _FAILED
        _install(process, packages)
        names = " ".join(package.partition("=")[0] for package in packages)
        yield write_text(f"The following NEW packages will be installed:\n  {names}\n")
        for name in names.split():
            yield write_text(f"Setting up {name} ...\n")
    return 0


def _report_permissions(process: Process, command: str) -> Steps:
    if command == "update":
        folder = "/var/lib/apt/lists/partial"
        yield process.report(f"E: List directory {folder} is missing. - Acquire (13: Permission denied)")
        return
    lock = "/var/lib/dpkg/lock-frontend"
    yield process.report(f"E: Could not open lock file {lock} - open (13: Permission denied)")
    yield process.report(f"E: Unable to acquire the dpkg frontend lock ({lock}), are you root?")


def apk(process: Process) -> Run:
    command, packages = _words(process)
    if command not in ("update", "add", "upgrade"):
        raise UnknownProgram(f"{process.name} {command}".rstrip())
    if process.host.user != _ROOT:
        yield process.report("ERROR: Unable to lock database: Permission denied")
        yield process.report("ERROR: Failed to open apk database: Permission denied")
        return 99
    missing = _missing(packages) if command == "add" else []
    if command == "add" and not missing:
        _install(process, packages)
    yield write_text(
        "fetch https://dl-cdn.alpinelinux.org/alpine/latest-stable/main/x86_64/APKINDEX.tar.gz\n"
    )
    if missing:
        yield process.report("ERROR: unable to select packages:")
        for package in missing:
            yield process.report(f"  {package} (no such package):\n    required by: world[{package}]")
        return len(missing)
    for index, package in enumerate(packages, 1):
        yield write_text(f"({index}/{len(packages)}) Installing {package}\n")
    yield write_text("OK\n")
    return 0


def yum(process: Process) -> Run:
    command, packages = _words(process)
    if command not in ("install", "update", "upgrade", "clean", "makecache"):
        raise UnknownProgram(f"{process.name} {command}".rstrip())
    if process.host.user != _ROOT:
        yield process.report(
            "Error: This command has to be run with superuser privileges (under the root user on most systems)."
        )
        return 1
    if command == "install":
        if missing := _missing(packages):
            for package in missing:
                yield write_text(f"No match for argument: {package}\n")
            names = " ".join(missing)
            yield process.report(f"Error: Unable to find a match: {names}")
            return 1
        _install(process, packages)
        yield write_text("Installed:\n" + "".join(f"  {package}\n" for package in packages) + "\n")
    yield write_text("Complete!\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {
    **dict.fromkeys(("apt", "apt-get"), apt),
    "apk": apk,
    **dict.fromkeys(("yum", "dnf", "microdnf"), yum),
}
