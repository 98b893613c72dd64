"""Parses a command line into a `Config`; an invalid flag is printed, and the process exits with 2."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.durations import format_duration
from mockube.apimachinery.feature_gates import gates_of
from mockube.apiserver.kinds.resource_config import left_out, runtime_config_problem
from mockube.apiserver.packs.problems import packs_problem
from mockube.component_base.flags import Sections, flags_of, seconds
from mockube.component_base.klog import Logging
from mockube.component_base.release_options import gates_problem, ignored_settings
from mockube.component_base.version import print_version, version_problem

from . import admission_plugins, authentication_configuration, authorization, request_headers, tls
from .authentication_configuration import OpenIDConnect
from .authorization import AuthorizationOptions
from .features import IMPLEMENTED_GATES, Features
from .settings import (
    ENVIRONMENT,
    SECTIONS,
    AdmissionOptions,
    Auditing,
    AuthenticationOptions,
    Control,
    Kubeadm,
    Kubelets,
    Services,
    Serving,
    StorageOptions,
    Tracing,
)
from .upstream import IGNORED


class Config(Struct, frozen=True, kw_only=True):
    serving: Serving = field(default_factory=Serving)
    store: StorageOptions = field(default_factory=StorageOptions)
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    openid: OpenIDConnect = field(default_factory=OpenIDConnect)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    kubelets: Kubelets = field(default_factory=Kubelets)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    services: Services = field(default_factory=Services)
    auditing: Auditing = field(default_factory=Auditing)
    tracing: Tracing = field(default_factory=Tracing)
    control: Control = field(default_factory=Control)
    kubeadm: Kubeadm = field(default_factory=Kubeadm)
    features: Features = field(default_factory=Features)
    logging: Logging = field(default_factory=Logging)
    ignored: tuple[str, ...] = ()
    """The flags of kube-apiserver that are set and have no effect."""

    @property
    def control_mode(self) -> str:
        """How the group of control is served: by default only on a server that no other machine reaches, with the groups of upstream."""
        is_local = ip_address(self.serving.bind_address).is_loopback
        return self.control.control or ("unlisted" if is_local else "off")

    def ignored_flags(self) -> Sequence[str]:
        """Return the flags whose values have another effect on kube-apiserver than on this server."""
        store = self.store
        return (
            *(f"--feature-gates={gate}" for gate in ignored_settings(*_gates(self), IMPLEMENTED_GATES)),
            *tls.values_without_effect(self.serving.tls_min_version, self.serving.tls_cipher_suites),
            *(
                f"--runtime-config={name}=true"
                for name in left_out(
                    self.features.runtime_config, self.features.kubernetes_version, _gates_on(self)
                )
            ),
            *(() if store.watch_cache else ("--watch-cache=false",)),
            *(() if store.default_watch_cache_size else ("--default-watch-cache-size=0",)),
            *(f"--watch-cache-sizes={name}#0" for name, size in store.watch_cache_sizes if not size),
        )

    def flags(self) -> Mapping[str, str]:
        """Return the text of each flag's value, by its name."""
        return {
            name.replace("_", "-"): _text(getattr(getattr(self, section), name), flag.read)
            for section, record in SECTIONS.items()
            for name, flag in flags_of(record).items()
        }


def _text(value: object, read: Callable[[str], object]) -> str:
    """Return a value of a flag as Go's flag library prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(item for item in value if isinstance(item, str))}]"
    if isinstance(value, range):
        return f"{value.start}-{value.stop - 1}"
    if read is seconds and isinstance(value, float):
        return format_duration(round(value * 10**9))
    return str(value) if isinstance(value, (str, int, float, Path)) else ""


def _gates(config: Config) -> tuple[tuple[tuple[str, bool], ...], str]:
    """Return the settings of feature gates, and their minor release."""
    return config.features.feature_gates, config.features.kubernetes_version


def _gates_on(config: Config) -> frozenset[str]:
    """Return the feature gates that the flag turns on."""
    gates = config.features.gates
    return frozenset(
        name for name, gate in gates_of(gates.minor).items() if gates.is_on(name) and not gate.default
    )


@cache
def _sections() -> Sections:
    """Return the parser, which takes longer to put together than a command line to parse."""
    return Sections(
        SECTIONS,
        ignored=IGNORED,
        prog="python -m mockube.apiserver",
        usage="python -m mockube.apiserver [FLAG ...]",
        description="mockube's API server.",
        epilog=f"Every flag can be set in the environment as well: {ENVIRONMENT}_SECURE_PORT is --secure-port.",
    )


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Config:
    sections = _sections()
    records, ignored = sections.parse(arguments, environment, ENVIRONMENT)
    features = records.pop("features")
    features = replace(features, packs=tuple(dict.fromkeys(features.packs)))
    config = Config(**records, features=features, ignored=tuple(ignored))
    print_version(config.features.version, config.features.kubernetes_version)
    problem = _problem(config)
    if problem:
        sections.parser.error(problem)
    return config


def _problem(config: Config) -> str:
    """Return what is wrong with the combination of flags that are each valid; "" if nothing is."""
    serving = config.serving
    max_expiration = config.authentication.service_account_max_token_expiration
    if max_expiration and not 3600 <= max_expiration <= 1 << 32:
        return "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
    if (serving.tls_cert_file is None) != (serving.tls_private_key_file is None):
        return "--tls-cert-file and --tls-private-key-file must be set together"
    if (serving.proxy_client_cert_file is None) != (serving.proxy_client_key_file is None):
        return "--proxy-client-cert-file and --proxy-client-key-file must be set together"
    if (
        config.authentication.service_account_key_file
        and not config.authentication.service_account_signing_key_file
    ):
        return "--service-account-key-file needs --service-account-signing-key-file, to sign tokens with"
    if problem := _authentication_problem(config):
        return problem
    if problem := packs_problem(config.features.packs):
        return f"--packs: {problem}"
    admission = config.admission
    return (
        gates_problem(*_gates(config))
        or runtime_config_problem(
            config.features.runtime_config,
            config.features.kubernetes_version,
            has_priority_and_fairness=config.features.enable_priority_and_fairness,
            gates=_gates_on(config),
        )
        or version_problem(config.features.version, config.features.kubernetes_version)
        or store_problem(config.store)
        or authorization.problem(config.authorization)
        or _mode_problem(config.authorization.types, serving.bind_address)
        or admission_plugins.problem(
            admission.enable_admission_plugins,
            admission.disable_admission_plugins,
            config.features.kubernetes_version,
        )
        or admission_plugins.configuration_problem(
            admission.enable_admission_plugins, admission.admission_control_config_file
        )
    )


def _authentication_problem(config: Config) -> str:
    settings = config.authentication
    file = settings.authentication_config
    if file.anonymous is not None and not settings.anonymous_auth:
        return "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"
    version = settings.authentication_token_webhook_version
    if version not in ("v1", "v1beta1"):
        return (
            f'unsupported authentication webhook version "{version}", supported versions are "v1", "v1beta1"'
        )
    return authentication_configuration.problem(
        file, config.openid, settings.service_account_issuer
    ) or request_headers.problem(settings)


def store_problem(store: StorageOptions) -> str:
    if (store.etcd_certfile is None) != (store.etcd_keyfile is None):
        return "--etcd-certfile and --etcd-keyfile must be set together"
    if store.etcd_certfile is not None and store.etcd_cafile is None:
        return "--etcd-certfile needs --etcd-cafile, to verify etcd"
    if store.etcd_servers and store.data_dir is not None:
        return "--etcd-servers and --data-dir cannot be set together: objects are stored in etcd or here"
    if store.etcd_servers and store.snapshot is not None:
        return "--etcd-servers and --snapshot cannot be set together: use `mockube snapshot restore` for etcd"
    if store.etcd_servers and store.history is not None:
        return (
            "--etcd-servers and --history cannot be set together: the past reaches as far as etcd's history, which all servers "
            "share; --etcd-compaction-interval sets how long it is"
        )
    return ""


def _mode_problem(modes: Sequence[str], bind_address: str) -> str:
    if len(set(modes) - {"Webhook"}) + modes.count("Webhook") < len(modes):
        return f"--authorization-mode: {','.join(modes)} names a mode more than once"
    if "AlwaysAllow" in modes and not ip_address(bind_address).is_loopback:
        return (
            "--authorization-mode: AlwaysAllow lets every user do everything, so it is only for a server that no other"
            f" machine reaches, and --bind-address is {bind_address}: omit the mode, or listen on 127.0.0.1"
        )
    return ""
