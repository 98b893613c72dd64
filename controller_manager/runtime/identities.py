"""Who each controller is to the server: the process itself under another name, or a service account of its own."""

from dataclasses import dataclass, replace

from controller_manager.runtime.sender import Sender
from controller_manager.runtime.token_bucket import Rate, TokenBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedIdentity:
    """Every controller shows what the process shows, and says in its User-Agent which one it is."""

    sender: Sender
    rate: Rate | None

    def of(self, service_account: str) -> Sender:
        return for_controller(self.sender, service_account, self.rate)


def for_controller(sender: Sender, name: str, rate: Rate | None) -> Sender:
    """As upstream, each has a limit of its own."""
    limit = None if rate is None else TokenBucket(rate, sender.clock)
    return replace(sender, agent=f"{sender.agent}/{name}", limit=limit)
