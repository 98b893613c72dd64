"""The servers of this distribution: by which images they are known, how these start them, and their programs."""

from typing import Final

from mockube.container_runtime.simulated.shell.process import Process, Run
from mockube.container_runtime.simulated.shell.programs.installed_servers import ServerKind
from mockube.container_runtime.simulated.shell.signals import SIGNALS

HANG_UP, USER_1 = SIGNALS["HUP"], SIGNALS["USR1"]


def _nginx(process: Process) -> Run:
    from .nginx.program import nginx  # noqa: PLC0415 - for few

    return (yield from nginx(process))


def _reload_nginx(process: Process) -> Run:
    from .nginx.program import reload  # noqa: PLC0415 - for few

    return (yield from reload(process))


def _httpd(process: Process) -> Run:
    from .httpd.program import httpd  # noqa: PLC0415 - for few

    return (yield from httpd(process))


def _httpd_foreground(process: Process) -> Run:
    from .httpd.program import httpd_foreground  # noqa: PLC0415 - for few

    return (yield from httpd_foreground(process))


def _apachectl(process: Process) -> Run:
    from .httpd.program import apachectl  # noqa: PLC0415 - for few

    return (yield from apachectl(process))


def _reload_httpd(process: Process) -> Run:
    from .httpd.program import httpd  # noqa: PLC0415 - for few

    return (yield from httpd(process, ("-k", "restart")))


NGINX: Final = ServerKind(
    folder="/etc/nginx",
    programs=dict.fromkeys(("nginx", "nginx-debug"), _nginx),
    command=("nginx", "-g", "daemon off;"),
    places=("/var/log/nginx",),
    reload=_reload_nginx,
    reload_signals=frozenset({HANG_UP}),
)
HTTPD: Final = ServerKind(
    folder="/usr/local/apache2/conf",
    programs={"httpd": _httpd, "httpd-foreground": _httpd_foreground, "apachectl": _apachectl},
    command=("httpd-foreground",),
    places=("/usr/local/apache2/logs",),
    reload=_reload_httpd,
    reload_signals=frozenset({HANG_UP, USER_1}),
)
