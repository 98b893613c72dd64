"""`mockube envtest DIR`: write launchers that replace envtest's binaries, so that test suites of controller-runtime run unchanged."""

import argparse
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mockube.failure import UsageError
from mockube.kubelet.node_pools.pool import plain_nodes

from .parsing import CommandParser
from .shared_flags import add_nodes, add_version, version_flags

_MARK: Final = "# Written by `mockube envtest`."
_HELP_CASES: Final = """\
  case "$flag" in
  --help | -h) echo "Usage: {name} [flags], of mockube"; exit 0 ;;
  --version) echo "Kubernetes v{version}"; exit 0 ;;
  esac"""

_PYTHON: Final = """\
python={executable}
[ -x "$python" ] || python=python3  # another machine, or another environment\
"""
_SERVER: Final = """\
#!/bin/sh
{mark}
{python}
certs=
modes=
left=$#
while [ "$left" -gt 0 ]; do
  flag=$1
  shift
  left=$((left - 1))
  case "$flag" in
  --cert[-_]dir | --etcd[-_]servers | --insecure[-_]port | --insecure[-_]bind[-_]address | --authorization[-_]mode | \\
    --authorization[-_]config)
    [ "$left" -gt 0 ] || {{ echo "flag needs an argument: $flag" >&2; exit 1; }}
    flag=$flag=$1
    shift
    left=$((left - 1)) ;;
  esac
{help}
  case "$flag" in
  --authorization[-_]mode=*) modes=$modes,${{flag#*=}} ;;
  --authorization[-_]config=*) modes=$modes,configured ;;
  esac
  case "$flag" in
  --cert[-_]dir=*) certs=${{flag#*=}} ;;
  --etcd[-_]servers=* | --insecure[-_]port=* | --insecure[-_]bind[-_]address=*) ;;  # objects are kept in memory
  *) set -- "$@" "$flag" ;;
  esac
done
own=${{certs:-$(mktemp -d)}}/mockube
mkdir -p -m 700 "$own"
set -- --cert-dir="$own" {flags} "$@"
if [ -f "$certs/apiserver.crt" ]; then
  # As kube-apiserver, which takes the pair that is in its folder.
  set -- --tls-cert-file="$certs/apiserver.crt" --tls-private-key-file="$certs/apiserver.key" "$@"
fi
{start_manager}exec "$python" -P -m mockube.apiserver "$@"
"""
_START_MANAGER: Final = """\
kubeconfig=$own/controller-manager.kubeconfig
running=$own/running
urls=$own/component-urls.json
rm -f "$kubeconfig" "$running" "$urls"
mkfifo -m 600 "$running"
case "$modes" in
*RBAC* | *AlwaysAllow* | "") with_roles=true flag=--write-manager-kubeconfig ;;
*) with_roles=false flag=--write-kubeconfig ;;  # only administrators have permissions
esac
set -- "$flag=$kubeconfig" --component-urls="$urls" --ready-after-controllers=true "$@"
(
  {{
    while [ ! -s "$kubeconfig" ] && kill -0 $$ 2>/dev/null; do sleep 0.05; done
    [ ! -s "$kubeconfig" ] || echo
  }} | "$python" -P -m mockube.processes.preimport mockube.controller_manager --kubeconfig="$kubeconfig" \\
    --use-service-account-credentials=$with_roles --simulate-nodes={nodes} \\
    --secure-port=0 --metrics-port=0 --write-component-urls="$urls" --leader-elect-sole-candidate=true {flags} &
  manager=$!
  read -r _ <"$running"  # ends with the server, however that ends
  kill -KILL $manager 2>/dev/null
) &
exec 9>"$running"
"""

_ETCD: Final = """\
#!/bin/sh
{mark}
{python}
for flag; do
{help}
done
# It serves etcd's health endpoint; the API server stores its objects itself.
exec "$python" -I -S -c {script} "$@"
"""
_ETCD_SCRIPT: Final = """\
import selectors
import signal
import socket
import sys

urls = "http://127.0.0.1:2379"
for flag, following in zip(sys.argv[1:], [*sys.argv[2:], ""]):
    name, equals, value = flag.partition("=")
    if name.lstrip("-") == "listen-client-urls":
        urls = value if equals else following
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
BODY = b'{"health":"true","reason":""}'
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n"
servers = selectors.DefaultSelector()
for url in urls.split(","):
    host, _, port = url.partition("//")[2].rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    servers.register(socket.create_server((host, int(port)), family=family, backlog=16), selectors.EVENT_READ)
while True:
    for ready, _ in servers.select():
        client, _ = ready.fileobj.accept()
        with client:
            client.settimeout(5)
            try:
                client.recv(65536)
                client.sendall(HEAD % len(BODY) + BODY)
            except OSError:
                pass
"""
_KUBECTL: Final = """\
#!/bin/sh
{mark}
{run}
"""
_NO_KUBECTL: Final = (
    "echo 'kubectl is not installed: put one on the PATH and run mockube envtest again' >&2; exit 127"
)


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", type=Path, help="the folder to write, for KUBEBUILDER_ASSETS"
    )
    parser.add_argument(
        "--with-controllers",
        action="store_true",
        help="also run the controller manager and simulated nodes, which envtest does not",
    )
    add_nodes(
        parser, "simulated nodes, with --with-controllers: a number, pools or a file (1)", plain_nodes(1)
    )
    add_version(parser)


def run(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if folder.is_file():
        raise UsageError(f"{folder} is a file: name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in launchers(options).items():
        path = folder / name
        if path.exists() and _MARK not in path.read_text(errors="replace"):
            print(
                f"{path} exists and was not written by mockube envtest: name another folder",
                file=sys.stderr,
            )
            return 1
        path.write_text(text)
        path.chmod(0o755)
    print(folder.resolve())
    return 0


def launchers(options: argparse.Namespace) -> Mapping[str, str]:
    """Return the texts of the files to write, by file name."""
    from mockube.component_base.version import version  # noqa: PLC0415 - only the command needs it, not its help

    python = _PYTHON.format(executable=shlex.quote(sys.executable))
    header = {"mark": _MARK, "version": version(options.kubernetes_version)}
    flags = shlex.join(version_flags(options))
    start_manager = ""
    if options.with_controllers:
        start_manager = _START_MANAGER.format(nodes=shlex.quote(options.simulate_nodes.text), flags=flags)
    kubectl = shutil.which("kubectl")
    start = _NO_KUBECTL if kubectl is None else f'exec {shlex.quote(kubectl)} "$@"'
    return {
        "kube-apiserver": _SERVER.format(
            mark=_MARK,
            python=python,
            help=_HELP_CASES.format(name="kube-apiserver", **header),
            flags=flags,
            start_manager=start_manager,
        ),
        "etcd": _ETCD.format(
            mark=_MARK,
            python=python,
            help=_HELP_CASES.format(name="etcd", **header),
            script=shlex.quote(_ETCD_SCRIPT),
        ),
        "kubectl": _KUBECTL.format(mark=_MARK, run=start),
    }
