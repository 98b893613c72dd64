"""A request as it came in, as far as metrics and the audit log need it."""

from collections.abc import Mapping
from typing import Protocol

from mockube.apiserver.authz.chain import DecisionAndReason
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import Impersonated, User


class Arrival(Protocol):
    """What the metrics do not need is looked up only if there is an audit log."""

    @property
    def audit_id(self) -> str: ...

    @property
    def info(self) -> RequestInfo: ...

    @property
    def authenticated(self) -> User:
        """Whose credentials were sent."""

    @property
    def impersonated(self) -> Impersonated | None: ...

    @property
    def decision(self) -> DecisionAndReason | None:
        """Of the authorizer; None if it was not called."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the event, added by its handlers."""

    @property
    def uri(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def user_agent(self) -> str: ...

    @property
    def is_dry_run(self) -> bool: ...

    @property
    def applies(self) -> bool:
        """Whether it is a patch by server-side apply."""
