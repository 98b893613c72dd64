"""The authorizers of an AuthorizationConfiguration, which is reloaded after its file has changed."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from mockube.apimachinery import gotext
from mockube.apiserver.kubeconfig import BadKubeconfig, read_endpoint
from mockube.apiserver.outgoing import Reviewer
from mockube.component_base.configuration_files import ConfigurationError

from .abac import ABAC
from .chain import AlwaysAllow, AlwaysDeny, Authorization, Authorizer, Decision, RemoteAuthorization
from .configuration import (
    DENY,
    SECOND,
    WEBHOOK,
    AuthorizationConfiguration,
    AuthorizerConfiguration,
    conditions_of,
    read_configuration,
)
from .webhook import WebhookAuthorizer, WebhookSettings

LOG: Final = logging.getLogger(__name__)
POLL_SECONDS: Final = 1.0
ALWAYS_ALLOW: Final = "AlwaysAllow"


class AuthorizationSettings(Struct, frozen=True, kw_only=True):
    """`path` is the file that is reloaded after changes, if there is one."""

    configuration: AuthorizationConfiguration
    data: bytes = b""
    path: Path | None = None
    policies: ABAC | None = None


class ConfiguredAuthorizers:
    """Sets the authorizers of the chain. `built_in` maps types to the authorizers that a file may contain besides webhooks."""

    def __init__(
        self,
        settings: AuthorizationSettings,
        chain: Authorization,
        built_in: Mapping[str, Authorizer],
        remote: RemoteAuthorization,
    ) -> None:
        self._settings = settings
        self._chain = chain
        self._remote = remote
        self._observer = remote.observer()
        self._built_in: dict[str, Authorizer] = {"AlwaysDeny": AlwaysDeny(), **built_in}
        if any(authorizer.type == ALWAYS_ALLOW for authorizer in settings.configuration.authorizers):
            # Only at the start does the server check its address, limit anonymous users and warn.
            self._built_in[ALWAYS_ALLOW] = AlwaysAllow()
        if settings.policies is not None:
            self._built_in["ABAC"] = settings.policies
        self._data = settings.data
        self._required = [
            authorizer.type for authorizer in settings.configuration.authorizers if authorizer.type != WEBHOOK
        ]
        self._use(settings.configuration)
        self._observer.record_config(settings.data)

    def _use(self, configuration: AuthorizationConfiguration) -> None:
        configured = configuration.authorizers
        self._chain.use(
            [*map(self._authorizer, configured)],
            [(authorizer.type, authorizer.name) for authorizer in configured],
        )

    def _authorizer(self, configuration: AuthorizerConfiguration) -> Authorizer:
        hook = configuration.webhook
        if configuration.type != WEBHOOK or hook is None:
            if configuration.type not in self._built_in:
                problem = "is not allowed if it was not enabled at initial server startup"
                raise ConfigurationError(f"authorizer type {configuration.type} {problem}")
            return self._built_in[configuration.type]
        observer, name, clock = self._observer, configuration.name, self._remote.clock
        try:
            endpoint = read_endpoint(Path(hook.connection_info.kube_config_file or ""))
        except BadKubeconfig as error:
            raise ConfigurationError(str(error)) from error
        reviewer = Reviewer(
            endpoint=endpoint,
            send=self._remote.send,
            clock=clock.real,
            seconds=hook.seconds,
            observe=lambda result, seconds: observer.record_evaluation(name, result, seconds),
        )
        settings = WebhookSettings(
            name=name,
            version=hook.subject_access_review_version,
            authorized_seconds=hook.allow_nanoseconds / SECOND if hook.cache_authorized_requests else 0,
            unauthorized_seconds=hook.deny_nanoseconds / SECOND if hook.cache_unauthorized_requests else 0,
            on_error=Decision.DENY if hook.failure_policy == DENY else Decision.NO_OPINION,
            conditions=conditions_of(hook),
        )
        return WebhookAuthorizer(settings, reviewer, clock, observer)

    @property
    def follows_file(self) -> bool:
        return self._settings.path is not None

    async def run(self) -> None:
        """Reload the file after changes, until cancelled."""
        while self._settings.path is not None:
            await self._remote.clock.real.sleep(POLL_SECONDS)
            await self.reload()

    async def reload(self) -> None:
        """Apply the file's content if it has changed and is valid."""
        path = self._settings.path
        if path is None:
            return
        try:
            data = await asyncio.to_thread(path.read_bytes)
            if data == self._data:
                return
            self._data = data
            LOG.info("found new authorization config data")
            self._use(read_configuration(data, self._required))
        except (OSError, ConfigurationError) as error:
            LOG.error('"reloading authorization config" err=%s', gotext.quote(str(error)))  # noqa: TRY400 - upstream's
            self._observer.record_reload(success=False)
            return
        LOG.info("reloaded authz config")
        self._observer.record_reload(success=True)
        self._observer.record_config(data)
