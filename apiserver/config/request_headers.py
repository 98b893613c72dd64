"""The flags `--requestheader-*` of front proxies: their validation, and their result."""

from typing import TYPE_CHECKING, Final

from cryptography.x509 import load_pem_x509_certificates

from mockube.apiserver.authn.request_headers import RequestHeaders

if TYPE_CHECKING:
    from .settings import AuthenticationOptions

_STANDARD_UID: Final = "x-remote-uid"
_LISTS: Final = (
    "requestheader_username_headers",
    "requestheader_group_headers",
    "requestheader_extra_headers_prefix",
    "requestheader_allowed_names",
    "requestheader_uid_headers",
)


def request_headers(settings: "AuthenticationOptions") -> RequestHeaders | None:
    """Return the headers of front proxies; None if there are no front proxies."""
    if settings.requestheader_client_ca_file is None:
        return None
    return RequestHeaders(
        username=settings.requestheader_username_headers,
        uid=settings.requestheader_uid_headers,
        groups=settings.requestheader_group_headers,
        extra_prefixes=settings.requestheader_extra_headers_prefix,
        allowed_names=settings.requestheader_allowed_names,
    )


def problem(settings: "AuthenticationOptions") -> str:
    """Return upstream's message for invalid flags; "" if they are valid."""
    for name in _LISTS:
        if not all(value.strip() for value in getattr(settings, name)):
            return f'empty value in "{name.replace("_", "-")}"'
    uids = settings.requestheader_uid_headers
    if uids and _STANDARD_UID not in map(str.lower, uids):
        return (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation"
            " will not work"
        )
    proxies, clients = settings.requestheader_client_ca_file, settings.client_ca_file
    if proxies is None or clients is None or settings.requestheader_allowed_names:
        return ""
    try:
        certificates = [set(load_pem_x509_certificates(path.read_bytes())) for path in (proxies, clients)]
    except (OSError, ValueError) as error:
        return f"unable to load client CA file: {error}"
    if certificates[0] & certificates[1]:
        return (
            "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates;"
            " --requestheader-allowed-names must be specified to ensure regular client certificates cannot set"
            " authenticating proxy headers for arbitrary users"
        )
    return ""
