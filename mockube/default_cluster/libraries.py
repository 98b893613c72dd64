"""Where each client library has its default cluster: attributes of its modules, and defaults of its functions.

`KUBECONFIG` alone is not enough: `kubernetes` and `kubernetes_asyncio` read it when they are imported, and keep the configuration
that was loaded last; kr8s returns a cached client; lightkube, pykube and kopf look for a service account first. A library of
another version may lack an attribute, which is then left out.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from msgspec import Struct

from .target import Target

_SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_NO_FOLDER: Final = "/dev/mockube-without-service-account"
"""In place of the service account's folder: no program can create it, so its files are missing."""
_LOCATION: Final = "KUBE_CONFIG_DEFAULT_LOCATION"
_UNLOADED_HOST: Final = "http://localhost"
"""The host of a configuration of `kubernetes` that nothing was loaded into."""


class Setting(Struct, frozen=True, kw_only=True):
    """An attribute of a library with its value during the block."""

    owner: Any
    name: str
    value: Any
    read_again: Callable[[], Any] | None = None
    """Returns the value after the block, if the library was imported in the block."""


Settings = Callable[[ModuleType, Target], Iterable[Setting]]


def settings_of(module: ModuleType, target: Target) -> Iterator[Setting]:
    """Yield the settings of a module of `LIBRARIES` that has the attributes."""
    with suppress(AttributeError):
        for setting in LIBRARIES[module.__name__](module, target):
            if hasattr(setting.owner, setting.name):
                yield setting


def loaded_servers(modules: Mapping[str, ModuleType]) -> Iterator[str]:
    """Yield the URLs of the servers that the imported libraries use by default."""
    for library in ("kubernetes", "kubernetes_asyncio"):
        configuration = modules.get(f"{library}.client.configuration")
        default = getattr(getattr(configuration, "Configuration", None), "_default", None)
        client = getattr(
            getattr(modules.get(f"{library}.client.api_client"), "ApiClient", None), "_default", None
        )
        for loaded in (default, getattr(client, "configuration", None)):
            if (host := getattr(loaded, "host", None)) and host != _UNLOADED_HOST:
                yield host
    cached = getattr(getattr(modules.get("kr8s._api"), "Api", None), "_instances", {})
    for clients in [*cached.values()]:
        for client in [*clients.values()]:
            yield getattr(getattr(client, "auth", None), "server", "")


def _location(module: ModuleType, target: Target) -> Iterator[Setting]:
    yield Setting(
        owner=module,
        name=_LOCATION,
        value=str(target.kubeconfig),
        read_again=lambda: os.environ.get("KUBECONFIG", "~/.kube/config"),
    )


def _configuration(module: ModuleType, target: Target) -> Iterator[Setting]:
    configuration = type.__call__(
        module.Configuration, host=target.url
    )  # older ones have a metaclass that copies
    configuration.verify_ssl = not target.insecure
    for name, path in (
        ("ssl_ca_cert", target.authority),
        ("cert_file", target.certificate),
        ("key_file", target.key),
    ):
        setattr(configuration, name, path and str(path))
    if target.server_name:
        configuration.tls_server_name = target.server_name
    if target.token:
        # The names of the header in older versions and newer ones.
        configuration.api_key = dict.fromkeys(("authorization", "BearerToken"), target.token)
        configuration.api_key_prefix = dict.fromkeys(("authorization", "BearerToken"), "Bearer")
    yield Setting(owner=module.Configuration, name="_default", value=configuration)


def _no_default_client(module: ModuleType, _: Target) -> Iterator[Setting]:
    yield Setting(owner=module.ApiClient, name="_default", value=None)


def _no_cached_clients(module: ModuleType, _: Target) -> Iterator[Setting]:
    yield Setting(owner=module.Api, name="_instances", value={})


def _lightkube_loader(module: ModuleType, target: Target) -> Iterator[Setting]:
    yield from _lightkube_location(module, target)
    yield _defaults_of(module.KubeConfig.from_env, _NO_FOLDER, str(target.kubeconfig))
    yield _defaults_of(module.KubeConfig.from_service_account, _NO_FOLDER)


def _lightkube_location(module: ModuleType, target: Target) -> Iterator[Setting]:
    yield Setting(owner=module, name="DEFAULT_KUBECONFIG", value=str(target.kubeconfig))


def _pykube_loader(module: ModuleType, _: Target) -> Iterator[Setting]:
    yield _defaults_of(module.KubeConfig.from_service_account, _NO_FOLDER)


def _defaults_of(method: Any, *defaults: object) -> Setting:
    """Return the setting of the default arguments of a class method."""
    return Setting(owner=method.__func__, name="__defaults__", value=defaults)


def _kopf_logins(module: ModuleType, _: Target) -> Iterator[Setting]:
    yield Setting(owner=module, name="os", value=_OutsideOfPods())


class _OutsideOfPods(SimpleNamespace):
    """The module `os` for kopf's logins, which look for the service account's files by paths in their code."""

    def __init__(self) -> None:
        super().__init__(path=_PathsOutsideOfPods())

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


class _PathsOutsideOfPods:
    def __getattr__(self, name: str) -> Any:
        return getattr(os.path, name)

    @staticmethod
    def exists(path: str) -> bool:
        return not path.startswith(_SERVICE_ACCOUNT) and Path(path).exists()


LIBRARIES: Final[Mapping[str, Settings]] = {
    "kubernetes.config": _location,
    "kubernetes.config.kube_config": _location,
    "kubernetes.client.configuration": _configuration,
    "kubernetes.client.api_client": _no_default_client,
    "kubernetes_asyncio.config": _location,
    "kubernetes_asyncio.config.kube_config": _location,
    "kubernetes_asyncio.client.configuration": _configuration,
    "kubernetes_asyncio.client.api_client": _no_default_client,
    "kr8s._api": _no_cached_clients,
    "lightkube.config.kubeconfig": _lightkube_loader,
    "lightkube.core.generic_client": _lightkube_location,
    "pykube.config": _pykube_loader,
    "kopf._core.intents.piggybacking": _kopf_logins,
}
"""The settings by the module that has them."""
