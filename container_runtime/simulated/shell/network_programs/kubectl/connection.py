"""Where kubectl sends its requests, and with which credentials: those of a kubeconfig, or those of the pod."""

import base64
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.simulated.shell.network_programs.urls import parse_url
from mockube.container_runtime.simulated.shell.options import ProgramOptions
from mockube.container_runtime.simulated.shell.process import Process, UnknownProgram
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
NOT_SIMULATED: Final = b"# This certificate or key is not simulated."
"""The text of the files of a node that stand for credentials which nobody has."""
_HTTPS: Final = 443
_UNSUPPORTED: Final = ("exec", "auth-provider", "username", "password", "tokenFile", "as")


class KubectlError(Exception):
    """kubectl ends with a message and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Connection(Struct, frozen=True, kw_only=True):
    """The server of a kubectl process, and its credentials."""

    host: str
    port: int
    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    authority: bytes | None = None
    """The CA certificates that must sign the server's; None if they are not checked."""
    namespace: str = ""


class Kubeconfig:
    """A kubeconfig of the machine on which kubectl runs."""

    def __init__(self, process: Process, path: str, tree: Mapping[str, Any]) -> None:
        self._process = process
        self.path = path
        self.tree = tree

    @property
    def current_context(self) -> str:
        return str(self.tree.get("current-context") or "")

    def entry(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return the cluster, the user or the context with a name."""
        for each in self.tree.get(f"{kind}s") or ():
            if isinstance(each, Mapping) and each.get("name") == name and isinstance(each.get(kind), Mapping):
                value: Mapping[str, Any] = each[kind]
                return value
        raise KubectlError(f'error: {kind} "{name}" does not exist')

    def data(self, entry: Mapping[str, Any], name: str) -> bytes:
        """Return the data of a field, or of the file that it names."""
        text, file = entry.get(f"{name}-data"), entry.get(name)
        try:
            data = base64.b64decode(str(text), validate=True) if text else b""
            if not text and file:
                data = self._process.host.files.read(self._process.path(str(file)))
        except FileError as error:
            raise KubectlError(
                f"error: unable to read {name} {file} for {self.current_context} due to open {file}: {error}"
            ) from None
        except ValueError:
            raise KubectlError(
                f'error: error loading config file "{self.path}": illegal base64 data at input byte 0'
            ) from None
        if data.startswith(NOT_SIMULATED):
            raise UnknownProgram(f"kubectl with the credentials in {file or self.path}")
        return data


def find_kubeconfig(process: Process, options: ProgramOptions) -> Kubeconfig | None:
    """Return the kubeconfig that kubectl reads: of its flag, of the environment, or that of the user."""
    files, named = process.host.files, options.get("kubeconfig")
    user_folder = process.environment.get("HOME") or "/root"
    path = (
        named or process.environment.get("KUBECONFIG", "").partition(":")[0] or f"{user_folder}/.kube/config"
    )
    if not files.exists(process.path(path)):
        if named:
            raise KubectlError(f"error: stat {named}: no such file or directory")
        return None
    try:
        tree = load(files.read(process.path(path))).tree
    except FileError as error:
        raise KubectlError(f'error: error loading config file "{path}": {error}') from None
    except YamlError as error:
        raise KubectlError(
            f'error: error loading config file "{path}": couldn\'t get version/kind; json parse error: {error}'
        ) from None
    if not isinstance(tree, Mapping):
        raise KubectlError(f'error: error loading config file "{path}": it is not a kubeconfig')
    return Kubeconfig(process, path, tree)


def connection_of(process: Process, options: ProgramOptions) -> Connection | None:
    """Return the connection that the flags, a kubeconfig or the pod give; None if there is none."""
    config = find_kubeconfig(process, options)
    if config is None:
        return connection_of_pod(process)
    name = options.get("context") or config.current_context
    context = config.entry("context", name) if name else {}
    cluster = config.entry("cluster", str(context.get("cluster") or "")) if context else {}
    user = config.entry("user", str(context["user"])) if context.get("user") else {}
    for field in _UNSUPPORTED:
        if user.get(field):
            raise UnknownProgram(f"kubectl with {field} of a user")
    server = options.get("server") or str(cluster.get("server") or "")
    if not server:
        return None
    try:
        url = parse_url(server if "://" in server else f"https://{server}")
    except ValueError:
        raise KubectlError(f"error: parse {server!r}: invalid URL") from None
    is_insecure = bool(cluster.get("insecure-skip-tls-verify")) or "insecure" in options
    return Connection(
        host=url.host,
        port=url.port or _HTTPS,
        token=options.get("token") or str(user.get("token") or ""),
        certificate=_pem(config.data(user, "client-certificate"), "certificate"),
        key=_pem(config.data(user, "client-key"), "key"),
        authority=None if is_insecure else config.data(cluster, "certificate-authority"),
        namespace=str(context.get("namespace") or ""),
    )


def _pem(data: bytes, kind: str) -> bytes:
    if data and b"-----BEGIN" not in data:
        raise KubectlError(f"error: tls: failed to find any PEM data in {kind} input")
    return data


def connection_of_pod(process: Process) -> Connection | None:
    """Return the connection with the account of a pod; None without one."""
    environment = process.environment
    host, token = environment.get("KUBERNETES_SERVICE_HOST", ""), _account(process, "token")
    if not host or not token:
        return None
    return Connection(
        host=host,
        port=int_or_none(environment.get("KUBERNETES_SERVICE_PORT", "")) or _HTTPS,
        token=token,
        namespace=_account(process, "namespace"),
    )


def _account(process: Process, name: str) -> str:
    files, path = process.host.files, f"{ACCOUNT}/{name}"
    try:
        return files.read(path).decode("utf-8", "replace").strip() if files.exists(path) else ""
    except FileError:
        return ""
