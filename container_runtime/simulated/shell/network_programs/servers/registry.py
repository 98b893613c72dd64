"""The list of the servers with a configuration: by which images they are known, how these start them, and their programs."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.container_runtime.images.table import Image
from mockube.container_runtime.simulated.shell.process import Process, Program, Run, listening
from mockube.container_runtime.simulated.shell.programs.servers import httpd as busybox_httpd
from mockube.container_runtime.simulated.shell.signals import SIGNALS

HANG_UP, USER_1 = SIGNALS["HUP"], SIGNALS["USR1"]


class ServerKind(Struct, frozen=True, kw_only=True):
    folder: str
    """The folder of the configuration, by which an image with the server is known."""
    programs: Mapping[str, Program]
    command: tuple[str, ...]
    """What the entrypoint of the image runs without arguments."""
    places: tuple[str, ...] = ()
    """Other folders that the server uses, such as those of its logs."""
    reload: Program
    """Reads the configuration again, as the server does at a signal."""
    reload_signals: frozenset[int]


def _nginx(process: Process) -> Run:
    from .nginx import nginx  # noqa: PLC0415 - for few

    return (yield from nginx(process))


def _reload_nginx(process: Process) -> Run:
    from .nginx import reload  # noqa: PLC0415 - for few

    return (yield from reload(process))


def _httpd(process: Process) -> Run:
    if not process.host.files.knows("/usr/local/apache2/conf/httpd.conf"):
        return (yield from busybox_httpd(process))
    from .httpd import httpd  # noqa: PLC0415 - for few

    return (yield from httpd(process))


def _httpd_foreground(process: Process) -> Run:
    from .httpd import httpd_foreground  # noqa: PLC0415 - for few

    return (yield from httpd_foreground(process))


def _apachectl(process: Process) -> Run:
    from .httpd import apachectl  # noqa: PLC0415 - for few

    return (yield from apachectl(process))


def _reload_httpd(process: Process) -> Run:
    from .httpd import httpd  # noqa: PLC0415 - for few

    return (yield from httpd(process, ("-k", "restart")))


KINDS: Final = (
    ServerKind(
        folder="/etc/nginx",
        programs=dict.fromkeys(("nginx", "nginx-debug"), _nginx),
        command=("nginx", "-g", "daemon off;"),
        places=("/var/log/nginx",),
        reload=_reload_nginx,
        reload_signals=frozenset({HANG_UP}),
    ),
    ServerKind(
        folder="/usr/local/apache2/conf",
        programs={"httpd": _httpd, "httpd-foreground": _httpd_foreground, "apachectl": _apachectl},
        command=("httpd-foreground",),
        places=("/usr/local/apache2/logs",),
        reload=_reload_httpd,
        reload_signals=frozenset({HANG_UP, USER_1}),
    ),
)

PROGRAMS: Final[Mapping[str, Program]] = {
    name: listening(program) for kind in KINDS for name, program in kind.programs.items()
}


def starts_server(argv: Sequence[str]) -> bool:
    """Return whether a command is one of the servers; httpd is Apache's with -D or -X, and else that of busybox."""
    program = argv[0].rpartition("/")[2] if argv else ""
    is_busybox = program == "httpd" and not any(word.startswith(("-D", "-X")) for word in argv)
    return program in PROGRAMS and not is_busybox


def kind_of(image: Image) -> ServerKind | None:
    """Return the server of an image whose configuration is known; None if it is not simulated."""
    for kind in KINDS:
        if kind.folder in image.configuration:
            is_known = any(path.startswith(f"{kind.folder}/") for path in image.files)
            return kind if is_known else None
    return None
