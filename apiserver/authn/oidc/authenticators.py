"""The authenticators of an AuthenticationConfiguration, which is reloaded from its file. Unreachable issuers are retried."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.paths import Path as FieldPath
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.authn.authenticators import BadToken, KnownToken
from mockube.apiserver.outgoing import Send, Tls
from mockube.apiserver.user import User, with_authenticated
from mockube.component_base.clock import Clock
from mockube.component_base.configuration_files import ConfigurationError, decode

from . import claims
from .configuration import AuthenticationConfiguration, JWTAuthenticator
from .expressions import Mapper
from .id_token import ALGORITHMS, UndecodableToken, Verifier, untrusted_issuer
from .key_set import FileKeySet
from .provider import RETRY_SECONDS, ClaimResolver, NotInitialized, Provider
from .validation import validate

LOG: Final = logging.getLogger(__name__)
POLL_SECONDS: Final = 1.0
"""The interval at which the file is checked for changes."""
UPDATE_SECONDS: Final = 60.0
"""The time in which the issuers of a changed file must become reachable."""
_FILES: Final = frozenset(
    (f"apiserver.config.k8s.io/{version}", "AuthenticationConfiguration")
    for version in ("v1", "v1beta1", "v1alpha1")
)


class AuthenticationObserver(Protocol):
    """Records the metrics of authenticators."""

    def record_authentication(self, issuer: str, seconds: float, *, success: bool) -> None: ...

    def record_fetch(self, issuer: str, body: bytes | None) -> None: ...

    def record_config(self, data: bytes) -> None: ...

    def record_reload(self, *, success: bool) -> None: ...


class JWTSettings(Struct, frozen=True, kw_only=True):
    """`path` is the file that is reloaded after changes, if there is one; `key_files` contain the keys of some issuers."""

    configuration: AuthenticationConfiguration
    data: bytes = b""
    path: Path | None = None
    algorithms: Sequence[str] = ALGORITHMS
    key_files: Mapping[str, Path] = field(default_factory=dict)
    disallowed: Collection[str] = ()


def read_configuration(data: bytes) -> AuthenticationConfiguration:
    """Return the configuration in a file, or raise ConfigurationError if its form is wrong."""
    if not data:
        raise ConfigurationError("empty config data")
    try:
        tree = load(data).tree
    except YamlError as error:
        raise ConfigurationError(str(error)) from error
    head = tree if isinstance(tree, dict) else {}
    if (head.get("apiVersion"), head.get("kind")) not in _FILES:
        group_version_kind = f"{head.get('apiVersion')}, Kind={head.get('kind')}"
        raise ConfigurationError(
            f"expected AuthenticationConfiguration of apiserver.config.k8s.io/v1, got {group_version_kind}"
        )
    configuration: AuthenticationConfiguration = decode(tree, AuthenticationConfiguration)
    return configuration


class IssuerAuthenticator:
    """Authenticates the tokens of one issuer, which are rejected until the issuer is initialized."""

    def __init__(
        self,
        settings: JWTSettings,
        authenticator: JWTAuthenticator,
        mapper: Mapper,
        *,
        send: Send,
        clock: Clock,
        observer: AuthenticationObserver,
    ) -> None:
        self._authenticator = authenticator
        self._mapper = mapper
        self._algorithms = settings.algorithms
        self._clock = clock
        self._observer = observer
        issuer = authenticator.issuer
        self.issuer = issuer.url
        self._provider = Provider(
            issuer=issuer.url,
            discovery_url=issuer.discovery_url,
            send=send,
            tls=Tls(authority=issuer.certificate_authority.encode()),
            clock=clock,
        )
        groups = authenticator.claim_mappings.groups.claim
        self._resolver = (
            ClaimResolver(groups, self._provider, audiences=issuer.audiences, algorithms=settings.algorithms)
            if groups
            else None
        )
        self._verifier: Verifier | None = None
        self.problem = f"oidc: authenticator for issuer {gotext.quote(issuer.url)} is not initialized"
        if issuer.url in settings.key_files:
            self._use(FileKeySet(settings.key_files[issuer.url]))

    @property
    def is_initialized(self) -> bool:
        return self._verifier is not None

    def _use(self, keys: object) -> None:
        self._verifier = Verifier(
            issuer=self.issuer,
            audiences=self._authenticator.issuer.audiences,
            algorithms=self._algorithms,
            keys=keys,  # type: ignore[arg-type]  # of either kind
            clock=self._clock,
        )
        self.problem = ""

    async def initialize(self) -> None:
        try:
            self._use(await self._provider.keys(lambda body: self._observer.record_fetch(self.issuer, body)))
        except NotInitialized as error:
            LOG.error("oidc authenticator: initializing plugin: %s", error)  # noqa: TRY400 - there is no fault of ours
            self.problem = (
                f"oidc: authenticator for issuer {gotext.quote(self.issuer)} is not healthy: {error}"
            )

    async def authenticate(self, token: str) -> User:
        began = self._clock.real.monotonic()
        try:
            user = await self._authenticate(token)
        except BadToken:
            self._observer.record_authentication(
                self.issuer, self._clock.real.monotonic() - began, success=False
            )
            raise
        self._observer.record_authentication(self.issuer, self._clock.real.monotonic() - began, success=True)
        return user

    async def _authenticate(self, token: str) -> User:
        if self._verifier is None:
            raise BadToken("oidc: authenticator not initialized")
        try:
            token_claims = await self._verifier.verify(token)
        except BadToken as error:
            raise BadToken(f"oidc: verify token: {error}") from error
        if self._resolver is not None:
            await self._resolver.expand(token_claims)
        return claims.user_of(token_claims, self._authenticator, self._mapper)


class JWTAuthenticators:
    """A `TokenAuthenticator` for the tokens of all issuers, which are valid for `audiences`, the server's own."""

    def __init__(
        self,
        settings: JWTSettings,
        *,
        audiences: Sequence[str],
        send: Send,
        clock: Clock,
        observer: AuthenticationObserver,
    ) -> None:
        self._settings = settings
        self._audiences = audiences
        self._send = send
        self._clock = clock
        self._observer = observer
        self._data = settings.data
        mappers, problems = validate(settings.configuration, settings.disallowed)
        if problems:
            raise ConfigurationError(errors.aggregate(problems))
        self._authenticators = self._build(settings.configuration, mappers)
        observer.record_config(settings.data)

    def _build(
        self, configuration: AuthenticationConfiguration, mappers: Sequence[Mapper]
    ) -> Mapping[str, IssuerAuthenticator]:
        authenticators = [
            IssuerAuthenticator(
                self._settings,
                jwt_authenticator,
                mapper,
                send=self._send,
                clock=self._clock,
                observer=self._observer,
            )
            for jwt_authenticator, mapper in zip(configuration.jwt, mappers, strict=True)
        ]
        return {authenticator.issuer: authenticator for authenticator in authenticators}

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        shared = [audience for audience in audiences if audience in self._audiences]
        if not shared:
            return None
        try:
            authenticator = self._authenticators.get(untrusted_issuer(token))
        except UndecodableToken:
            return None
        if authenticator is None:
            return None
        user = await authenticator.authenticate(token)
        return KnownToken(with_authenticated(user), shared)

    async def initialize(self) -> None:
        """Discover the issuers that are not initialized yet."""
        await _initialize(self._authenticators.values())

    async def run(self) -> None:
        """Retry the issuers that are not initialized, and reload the file after changes, until cancelled."""
        due = 0.0
        while True:
            if self._clock.real.monotonic() >= due:
                await self.initialize()
                due = self._clock.real.monotonic() + RETRY_SECONDS
            await self.reload()
            await self._clock.real.sleep(POLL_SECONDS)

    async def reload(self) -> None:
        """Apply the file's content if it has changed and is valid."""
        path = self._settings.path
        if path is None:
            return
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            self._fail("failed to read authentication config file", error)
            await self._clock.real.sleep(UPDATE_SECONDS)
            return
        if data == self._data:
            return
        try:
            configuration = read_configuration(data)
        except ConfigurationError as error:
            self._fail("failed to load authentication config", error)
            self._data = data  # a retry cannot make it valid
            return
        mappers, field_errors = validate(configuration, self._settings.disallowed)
        problems = [*field_errors]
        if configuration.anonymous != self._settings.configuration.anonymous:
            field_path = FieldPath().child("anonymous")
            problems.append(errors.forbidden(field_path, "changed from initial configuration file"))
        if problems:
            self._fail("failed to validate authentication config", errors.aggregate(problems))
            self._data = data
            return
        await self._update(configuration, mappers, data)

    async def _update(
        self, configuration: AuthenticationConfiguration, mappers: Sequence[Mapper], data: bytes
    ) -> None:
        """Replace the authenticators once all new ones are initialized."""
        authenticators, end = (
            self._build(configuration, mappers),
            self._clock.real.monotonic() + UPDATE_SECONDS,
        )
        await _initialize(authenticators.values())
        while not all(authenticator.is_initialized for authenticator in authenticators.values()):
            if self._clock.real.monotonic() >= end:
                problems = [
                    authenticator.problem
                    for authenticator in authenticators.values()
                    if authenticator.problem
                ]
                self._fail("failed to update authentication config", errors.aggregate(problems))
                return
            await self._clock.real.sleep(RETRY_SECONDS)
            await _initialize(authenticators.values())
        self._authenticators, self._data = authenticators, data
        LOG.info("reloaded authentication config")
        self._observer.record_reload(success=True)
        self._observer.record_config(data)

    def _fail(self, message: str, problem: object) -> None:
        LOG.error('"%s" err=%s', message, gotext.quote(str(problem)))
        self._observer.record_reload(success=False)


async def _initialize(authenticators: Collection[IssuerAuthenticator]) -> None:
    await asyncio.gather(
        *(authenticator.initialize() for authenticator in authenticators if not authenticator.is_initialized)
    )
