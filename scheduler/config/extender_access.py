"""The address of an extender, how to verify it, and the client's certificate, from its configuration.

Upstream: makeTransport of pkg/scheduler/extender.go, TLSConfigFor of client-go's transport.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct

from mockube.apimachinery.durations import parse_duration
from mockube.client.kubeconfig import Access, KubeconfigError
from mockube.client.tls import REAL_CLOCK, tls_context
from mockube.component_base.configuration_files import ConfigurationError

from .types import Extender, ExtenderTLSConfig

_DEFAULT_TIMEOUT: Final = 5.0
"""DefaultExtenderTimeout, in seconds."""
_NANOSECONDS: Final = 10**9
_CONFLICT: Final = "specifying a root certificates file with the insecure flag is not allowed"


class ExtenderAccess(Struct, frozen=True):
    """An extender and how it is reached."""

    extender: Extender
    access: Access

    @property
    def timeout(self) -> float:
        """The seconds that a request may take."""
        return parse_duration(self.extender.http_timeout) / _NANOSECONDS or _DEFAULT_TIMEOUT


def access_of(extender: Extender) -> ExtenderAccess:
    """Return how an extender is reached. Raises ConfigurationError."""
    tls = extender.tls_config or ExtenderTLSConfig()
    try:
        authority = tls.ca_data or _content(tls.ca_file)
        access = Access(
            server=extender.url_prefix.rstrip("/"),
            authority=authority,
            server_name=tls.server_name,
            insecure=tls.insecure or (extender.enable_https and not authority),
            certificate=tls.cert_data or _content(tls.cert_file),
            key=tls.key_data or _content(tls.key_file),
        )
        if access.server.startswith("https:"):
            tls_context(access, REAL_CLOCK)
    except OSError as error:  # includes errors of OpenSSL
        problem = f"open {error.filename}: {(error.strerror or '').lower()}" if error.filename else str(error)
        raise ConfigurationError(f"couldn't build extenders: {problem}") from error
    except KubeconfigError as error:
        raise ConfigurationError(f"couldn't build extenders: {error}") from error
    if access.insecure and authority:
        raise ConfigurationError(f"couldn't build extenders: {_CONFLICT}")
    return ExtenderAccess(extender, access)


def _content(file: str) -> bytes:
    return Path(file).read_bytes() if file else b""
