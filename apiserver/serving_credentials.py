"""Serving certificates and trusted CAs: those that flags name, and generated ones for the others."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from mockube.apimachinery.randomness import Random

from . import kubeconfig
from .authn import token_file as tokens
from .authn.chain import Trust
from .authn.serviceaccount import keys
from .authn.serviceaccount.tokens import TokenLifetime
from .authn.token_webhook import TokenWebhookSettings
from .config.authentication_configuration import jwt_settings
from .config.command_line import Config
from .config.request_headers import request_headers
from .config.settings import AuthenticationOptions, Kubelets, Serving
from .config.tls import SECURE, minimum_version, openssl_ciphers
from .http.backend_connection import KubeletClient
from .pki import cert_dir
from .pki.issue import LEAF_YEARS, Pair, Subject, names_of
from .pki.reloading import CertificateFiles, Handshake, ServingCertificates
from .user import AUTHENTICATED, User

TOKEN_BYTES = 32
FOLDER = "pki"
"""The folder of certificates below --data-dir, unless --cert-dir names another one."""


class Credentials(Struct, frozen=True, kw_only=True):
    tls: ServingCertificates
    server_ca: bytes
    """The CA that clients must trust to verify the server."""
    hosts: Sequence[str]
    """Names and addresses at which clients and pods reach the server."""
    trust: Trust
    admin: Pair
    admin_token: str
    manager: Pair
    """The client certificate of the controller manager."""
    manager_token: str
    """Its bearer token, which the server accepts whatever CA its clients have."""
    kubelets: KubeletClient
    """The credentials of the server for requests to kubelets."""
    proxy: Pair
    """The client certificate of the server for proxied requests to aggregated API servers."""
    proxy_ca: bytes
    """The CA that issued the certificate `proxy`; b"" if it is not known."""

    @property
    def names(self) -> Sequence[str]:
        """The names and addresses of the server: its hosts, and those of its current certificate."""
        return *self.hosts, *names_of(self.tls.certificate)

    def write_kubeconfig(self, path: Path, url: str) -> None:
        """Write the kubeconfig of the administrator for the server at a URL."""
        kubeconfig.write(
            path,
            server=url,
            ca=self.server_ca,
            client=self.admin,
            token=self.admin_token,
            server_name=self._server_name(url),
        )

    def write_manager_kubeconfig(self, path: Path, url: str) -> None:
        """Write the kubeconfig of the controller manager for the server at a URL."""
        kubeconfig.write(
            path,
            server=url,
            ca=self.server_ca,
            client=self.manager,
            token=self.manager_token,
            user=cert_dir.MANAGER.name,
            server_name=self._server_name(url),
        )

    def _server_name(self, url: str) -> str:
        """Return the name by which a client verifies the server at a URL; "" if that is its host.

        A certificate of a flag may be for other names than the address of this machine.
        """
        names, host = names_of(self.tls.certificate), urlsplit(url).hostname or ""
        exact = [name for name in names if "*" not in name]
        return "" if host in names or not exact else exact[0]


def load_credentials(
    config: Config, address: str, *, now: datetime, random: Random, years: int = LEAF_YEARS
) -> Credentials:
    """Read the certificates and keys that flags name, and create those that are missing, which are valid for some years."""
    serving, authentication = config.serving, config.authentication
    hosts = [host for host in (serving.bind_address, address, *serving.tls_san) if host]
    server = cert_dir.server_subject(hosts, config.services.service_cluster_ip_range[0])
    named = (
        *(serving.tls_cert_file, serving.tls_private_key_file),
        *(serving.proxy_client_cert_file, serving.proxy_client_key_file),
        *(config.kubelets.kubelet_client_certificate, config.kubelets.kubelet_client_key),
    )
    configured_files = [file.absolute() for file in named if file is not None]
    admin = cert_dir.ADMIN if serving.write_kubeconfig is None else cert_dir.KUBECONFIG_ADMIN
    with (
        _folder(config) as path,
        cert_dir.prepare_folder(
            path,
            server,
            now=now,
            random=random,
            configured_files=configured_files,
            admin=admin,
            years=years,
        ) as pki_folder,
    ):
        authority = pki_folder.certificate(cert_dir.AUTHORITY)
        serving_certificate = serving.tls_cert_file or pki_folder.certificate(cert_dir.SERVER)
        key = serving.tls_private_key_file or pki_folder.key(cert_dir.SERVER)
        client_ca = authentication.client_ca_file or authority
        token, manager_token = (random.bytes(TOKEN_BYTES).hex() for _ in range(2))
        certificate = serving_certificate.read_bytes()
        proxies = authentication.requestheader_client_ca_file
        return Credentials(
            tls=ServingCertificates(
                _pair(serving_certificate, key),
                client_ca.read_bytes(),
                b"" if proxies is None else proxies.read_bytes(),
                handshake=Handshake(
                    minimum_version=minimum_version(serving.tls_min_version, serving.tls_cipher_suites),
                    ciphers=openssl_ciphers(serving.tls_cipher_suites or SECURE),
                ),
                files=CertificateFiles(
                    pair=() if serving.tls_cert_file is None else (serving_certificate, key),
                    client_ca=_as_paths(authentication.client_ca_file),
                    request_headers_ca=_as_paths(proxies),
                ),
            ),
            server_ca=certificate if serving.tls_cert_file else authority.read_bytes(),
            hosts=server.hosts,
            trust=_trust(
                config,
                {token: cert_dir.ADMIN, manager_token: cert_dir.MANAGER},
                pki_folder.key(cert_dir.SERVICE_ACCOUNTS),
            ),
            admin=pki_folder.pair(cert_dir.CLIENT),
            admin_token=token,
            manager=pki_folder.pair(cert_dir.CONTROLLERS),
            manager_token=manager_token,
            kubelets=_kubelet_client(config.kubelets, pki_folder),
            **_proxy(serving, pki_folder),
        )


def _as_paths(path: Path | None) -> Sequence[Path]:
    return () if path is None else (path.absolute(),)


def _pair(certificate: Path, key: Path | None) -> Pair:
    """Read a certificate and its key, which is in the certificate's file if it has none of its own."""
    return Pair(certificate=certificate.read_bytes(), key=(key or certificate).read_bytes())


def _proxy(serving: Serving, pki_folder: cert_dir.Folder) -> dict[str, Any]:
    """Return the certificate that the flags name, or the generated one with its CA."""
    certificate, key = serving.proxy_client_cert_file, serving.proxy_client_key_file
    if certificate is not None and key is not None:
        return {"proxy": _pair(certificate, key), "proxy_ca": b""}
    authority = pki_folder.certificate(cert_dir.PROXY_AUTHORITY).read_bytes()
    return {"proxy": pki_folder.pair(cert_dir.PROXY_CLIENT), "proxy_ca": authority}


def _trust(config: Config, own_tokens: Mapping[str, Subject], generated: Path) -> Trust:
    settings = config.authentication
    users = {
        token: User(name=subject.name, groups=(*subject.groups, AUTHENTICATED))
        for token, subject in own_tokens.items()
    }
    token_file, authentication_config = settings.token_auth_file, settings.authentication_config
    signing = settings.service_account_signing_key_file or generated
    others = settings.service_account_key_file
    return Trust(
        tokens={**users, **(tokens.read(token_file) if token_file is not None else {})},
        keys=keys.load(signing.read_bytes(), [path.read_bytes() for path in others]),
        issuers=settings.service_account_issuer,
        audiences=settings.api_audiences,
        anonymous=settings.anonymous_auth
        if authentication_config.anonymous is None
        else authentication_config.anonymous,
        anonymous_paths=authentication_config.anonymous_paths,
        request_headers=request_headers(settings),
        token_webhook=_token_webhook(settings),
        jwt=jwt_settings(authentication_config, config.openid, settings.service_account_issuer),
        token_lifetime=TokenLifetime(
            max_expiration_seconds=int(settings.service_account_max_token_expiration),
            extends_expiration=settings.service_account_extend_token_expiration,
        ),
        bootstrap_tokens=settings.enable_bootstrap_token_auth,
    )


def _token_webhook(settings: AuthenticationOptions) -> TokenWebhookSettings | None:
    path = settings.authentication_token_webhook_config_file
    if path is None:
        return None
    return TokenWebhookSettings(
        endpoint=kubeconfig.read_endpoint(path),
        version=settings.authentication_token_webhook_version,
        cache_seconds=settings.authentication_token_webhook_cache_ttl,
    )


def _kubelet_client(settings: Kubelets, pki_folder: cert_dir.Folder) -> KubeletClient:
    certificate, key = settings.kubelet_client_certificate, settings.kubelet_client_key
    authority = settings.kubelet_certificate_authority
    pair = pki_folder.pair(cert_dir.KUBELET_CLIENT) if certificate is None else _pair(certificate, key)
    return KubeletClient(
        certificate=pair.certificate,
        key=pair.key,
        authority="" if authority is None else authority.read_text(),
        seconds=settings.kubelet_timeout,
    )


@contextmanager
def _folder(config: Config) -> Iterator[Path]:
    """Yield the folder of generated files: a temporary one if there is neither --cert-dir nor --data-dir."""
    if config.serving.cert_dir is not None:
        yield config.serving.cert_dir
    elif config.store.data_dir is not None:
        yield config.store.data_dir / FOLDER
    else:
        with tempfile.TemporaryDirectory(prefix="mockube-") as path:
            yield Path(path)
