"""Users in headers of front proxies, which are accepted only with a certificate of the proxies' authority."""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from mockube.apimachinery import status, uri
from mockube.apimachinery.x509.der import CertificateError
from mockube.apiserver.user import User, with_authenticated

from .authenticators import PresentedCredentials
from .client_certificates import CertificateVerifier

Headers = Iterable[tuple[str, str]]


class RequestHeaders(Struct, frozen=True, kw_only=True, dict=True):
    """Names of headers, and the common names of trusted proxies; without names every verified certificate is accepted."""

    username: Sequence[str] = ()
    uid: Sequence[str] = ()
    groups: Sequence[str] = ()
    extra_prefixes: Sequence[str] = ()
    allowed_names: Collection[str] = ()

    def user_of(self, headers: Headers) -> User | None:
        """Return the user in the headers; None if there is none."""
        values_by_header: dict[str, list[str]] = {}
        for name, value in headers:
            values_by_header.setdefault(name.lower(), []).append(value)
        name = _first_value(values_by_header, self.username)
        if not name:
            return None
        groups = [
            value for header in self.groups for value in values_by_header.get(header.lower(), ()) if value
        ]
        extra: dict[str, list[str]] = {}
        for prefix in map(str.lower, self.extra_prefixes):
            for header, values in values_by_header.items():
                if header.startswith(prefix):
                    extra.setdefault(uri.unescape(header.removeprefix(prefix)), []).extend(values)
        return User(
            name=name, uid=_first_value(values_by_header, self.uid), groups=tuple(groups), extra=extra
        )

    @cached_property
    def _header_names(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """The names and prefixes of headers, in lower case."""
        names = frozenset(map(str.lower, (*self.username, *self.uid, *self.groups)))
        return names, tuple(map(str.lower, self.extra_prefixes))

    def is_own(self, header: str) -> bool:
        """Return whether a header contains user information, so that it is never forwarded."""
        name, (names, prefixes) = header.lower(), self._header_names
        return name in names or name.startswith(prefixes)


def _first_value(values_by_header: dict[str, list[str]], names: Sequence[str]) -> str:
    return next(
        (values_by_header[name.lower()][0] for name in names if values_by_header.get(name.lower(), [""])[0]),
        "",
    )


class FrontProxy:
    """Authenticates a request by its headers if its certificate is a front proxy's."""

    def __init__(self, headers: RequestHeaders, verifier: CertificateVerifier) -> None:
        self._allowed = frozenset(headers.allowed_names)
        self._verifier = verifier

    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        if presented.certificates is None:
            return None
        verification = self._verifier.verify(presented.certificates)
        problem, name = verification.problem, verification.subject.common_name
        if not problem and self._allowed and name not in self._allowed:
            problem = f"x509: subject with cn={name} is not in the allowed list"
        if problem:
            raise status.Unauthorized("Unauthorized") from CertificateError(problem)
        return None if presented.proxied is None else with_authenticated(presented.proxied)
