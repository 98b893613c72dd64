"""Who each controller is to the server: the process itself under another name, or a service account of its own."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from controller_manager.runtime.credentials import Credential
from controller_manager.runtime.sender import Sender
from controller_manager.runtime.service_accounts import NAMESPACE
from controller_manager.runtime.token_bucket import Rate, TokenBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedIdentity:
    """Every controller shows what the process shows, and says in its User-Agent which one it is."""

    sender: Sender
    rate: Rate | None

    def of(self, service_account: str) -> Sender:
        return _named(self.sender, service_account, self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnIdentities:
    """Every controller is a service account, and goes by its name."""

    anonymous: Sender
    """Shows nothing by itself: a certificate would count more than a token."""
    credential: Callable[[str], Credential]
    rate: Rate | None

    def of(self, service_account: str) -> Sender:
        sender = replace(self.anonymous, credential=self.credential(service_account))
        return _named(sender, f"system:serviceaccount:{NAMESPACE}:{service_account}", self.rate)


def _named(sender: Sender, name: str, rate: Rate | None) -> Sender:
    """As upstream, each has a limit of its own."""
    limit = None if rate is None else TokenBucket(rate, sender.clock)
    return replace(sender, agent=f"{sender.agent}/{name}", limit=limit)
