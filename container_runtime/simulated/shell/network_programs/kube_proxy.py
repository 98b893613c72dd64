"""kube-proxy: reads its configuration, as it is only when it starts, and runs until it is stopped. The rules of Services are in `simulated.network.services`.

Upstream: cmd/kube-proxy/app and pkg/proxy/apis/config of Kubernetes.
"""

from math import inf
from typing import Any, Final

import orjson

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.simulated.shell.process import Process, Run, Sleep
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

_VERSION: Final = "kubeproxy.config.k8s.io/v1alpha1"
_KIND: Final = "KubeProxyConfiguration"
_SCHEME: Final = "pkg/proxy/apis/config/scheme/scheme.go:29"
_MODES: Final = ("iptables", "ipvs", "nftables")


class _BadConfiguration(Exception):
    """The message is that of kube-proxy."""


def kube_proxy(process: Process) -> Run:
    path, mode = "", ""
    words = list(process.arguments)
    while words:
        option, equals, value = words.pop(0).partition("=")
        if option in ("--config", "--proxy-mode", "--hostname-override", "--v", "-v"):
            value = value if equals else (words.pop(0) if words else "")
            path, mode = (
                (value if option == "--config" else path),
                (value if option == "--proxy-mode" else mode),
            )
    try:
        mode = _mode_of(process, path) if path else mode
        _check_mode(mode)
    except _BadConfiguration as error:
        message = orjson.dumps(str(error)).decode()
        yield process.report(_klog(process, "E", "run.go:72", f'"command failed" err={message}'))
        return 1
    for place, text in (
        ("server_linux.go:136", f'"Using {mode or _MODES[0]} Proxier"'),
        ("shared_informer.go:357", '"Caches are synced" controller="service config"'),
        ("shared_informer.go:357", '"Caches are synced" controller="endpoint slice config"'),
    ):
        yield process.report(_klog(process, "I", place, text))
    yield Sleep(inf)
    return 0


def _mode_of(process: Process, path: str) -> str:
    """Return the mode that the file of --config has."""
    try:
        configuration: Any = load(process.host.files.read(process.path(path))).tree
    except FileError as error:
        raise _BadConfiguration(f"failed complete: open {path}: {str(error).lower()}") from error
    except YamlError as error:
        message = str(error).removeprefix("error converting YAML to JSON: ")
        raise _BadConfiguration(f"failed complete: failed to decode: {message}") from error
    _check_kind(configuration)
    return str(configuration.get("mode") or "")


def _check_kind(configuration: Any) -> None:
    if not isinstance(configuration, dict):
        raise _BadConfiguration(
            "failed complete: failed to decode: couldn't get version/kind; json parse error: json: cannot unmarshal "
            "into Go value of type struct { APIVersion string; Kind string }"
        )
    kind, version = configuration.get("kind"), configuration.get("apiVersion")
    body = orjson.dumps(configuration).decode()
    for name, value in (("Kind", kind), ("apiVersion", version)):
        if not value:
            raise _BadConfiguration(
                f"failed complete: failed to decode: Object '{name}' is missing in '{body}'"
            )
    if (kind, version) != (_KIND, _VERSION):
        raise _BadConfiguration(
            f'failed complete: failed to decode: no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
        )


def _check_mode(mode: str) -> None:
    if mode and mode not in _MODES:
        raise _BadConfiguration(
            f'failed validate: KubeProxyConfiguration.Mode.ProxyMode: Invalid value: "{mode}": must be {", ".join(_MODES)} '
            "or blank (blank means the best-available proxy [currently iptables])"
        )


def _klog(process: Process, severity: str, place: str, text: str) -> str:
    now = process.host.now_running(is_shown=True)
    return f"{severity}{now:%m%d %H:%M:%S.%f}       1 {place}] {text}"
