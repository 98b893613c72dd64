"""The requests of the last minute: those that the server remembers, and those that arrive."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.status import ApiError, Expired, Forbidden, NotFound, Unauthorized
from mockube.apimachinery.timestamps import parse_micro_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.control_objects import CLOCK, CLOCKS, LONG_VERBS, REQUESTS, watch_requests

from .readings import Unreadable, unreadable

WINDOW_SECONDS: Final = 60.0
LAST: Final = f"of the last {WINDOW_SECONDS:.0f} seconds"
REMEMBERED: Final = "that the server remembers, as its clock is paused"
RETRY_SECONDS: Final = 2.0
"""A watch is opened that often at most."""
NO_RESPONSE: Final = 0
"""The code of a request whose client left."""
CUT: Final = -1
"""The code of one whose connection a Fault has cut."""
_REFUSALS: Final = (Unauthorized, Forbidden, NotFound)
"""Errors that stay."""


class SentRequest(Struct, frozen=True, kw_only=True):
    """A request that has ended, and when it arrived, in seconds since 1970 by the clock of the cluster."""

    time: float
    client: str
    verb: str
    code: int
    seconds: float


class ClientRequests(Struct, frozen=True, kw_only=True):
    """The requests of one client with one verb and one code."""

    client: str
    verb: str
    code: int
    count: int
    mean: float | None
    slowest: float | None
    """Seconds; None for requests that last as long as a client likes."""


def request_of(tree: ReadOnlyTree) -> SentRequest | None:
    """Return a Request that has ended; None for one in progress."""
    spec, status = tree["spec"], tree.get("status") or {}
    if "seconds" not in status:
        return None
    return SentRequest(
        time=parse_micro_time(spec["time"]).timestamp(),
        client=spec.get("user") or "(nobody)",
        verb=spec.get("verb") or "-",
        code=status.get("code", CUT if status.get("isCut") else NO_RESPONSE),
        seconds=status["seconds"],
    )


def count_requests(requests: Sequence[SentRequest]) -> Sequence[ClientRequests]:
    """Return the requests by client, verb and code, the most first."""
    groups: dict[tuple[str, str, int], list[float]] = {}
    for request in requests:
        groups.setdefault((request.client, request.verb, request.code), []).append(request.seconds)
    counts = Counter({group: len(seconds) for group, seconds in groups.items()})
    ordered = sorted(counts, key=lambda group: (-counts[group], group))
    return [_counted(group, groups[group]) for group in ordered]


def _counted(group: tuple[str, str, int], seconds: Sequence[float]) -> ClientRequests:
    client, verb, code = group
    has_latency = verb not in LONG_VERBS
    return ClientRequests(
        client=client,
        verb=verb,
        code=code,
        count=len(seconds),
        mean=sum(seconds) / len(seconds) if has_latency else None,
        slowest=max(seconds) if has_latency else None,
    )


class RequestFollower:
    """Follows the Requests of a server; `follow` ends only with an error that stays."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._newest = deque[tuple[float, SentRequest]]()
        """Each with the monotonic time at which it ended: the clock of the cluster may stand still, run faster, or leap."""
        self._remembered_until = 0.0
        self._is_refused = False
        self.problem: Unreadable | None = None
        """Why there are none."""

    def recent(self) -> Sequence[SentRequest]:
        """Return those of the last minute."""
        begin = self._clock.monotonic() - WINDOW_SECONDS
        while self._newest and self._newest[0][0] < begin:
            self._newest.popleft()
        return [request for _, request in self._newest]

    @property
    def span(self) -> str:
        """Say which requests are recent: while time stands still, how old those are that the server remembers is not known."""
        return REMEMBERED if self._clock.monotonic() < self._remembered_until else LAST

    async def read_remembered(self) -> None:
        """Read those that the server remembers, of which the newest ended now: they are those of the reading before."""
        try:
            listed = await self._client.list(REQUESTS)
        except ApiError as error:
            self._note(error)
            return
        if await self._is_paused():
            self._remembered_until = self._clock.monotonic() + WINDOW_SECONDS
        found = [request for tree in listed.items if (request := request_of(tree)) is not None]
        found.sort(key=_ended)
        ahead = _ended(found[-1]) - self._clock.monotonic() if found else 0.0
        self._newest = deque((_ended(request) - ahead, request) for request in found)

    async def _is_paused(self) -> bool:
        """Return whether the time of the cluster stands still; False if that is not known."""
        try:
            return bool((await self._client.get(CLOCKS, CLOCK))["spec"].get("paused"))
        except ApiError:
            return False

    async def follow(self) -> None:
        """Add those that arrive, until cancelled, or until the server refuses."""
        while not self._is_refused:
            began = self._clock.monotonic()
            try:
                async for tree in watch_requests(self._client, ""):
                    self._add(tree)
            except Expired:
                pass  # more requests arrived than it could read: it begins with the newest one
            except ApiError as error:
                self._note(error)
            except NoResponse:
                pass  # it is restarted, or away for a while
            await self._clock.sleep(max(began + RETRY_SECONDS - self._clock.monotonic(), 0.0))

    def _note(self, error: ApiError) -> None:
        self.problem = unreadable(error)
        self._is_refused = isinstance(error, _REFUSALS)

    def _add(self, tree: ReadOnlyTree) -> None:
        self.problem = None
        request = request_of(tree)
        if request is not None:
            self._newest.append((self._clock.monotonic(), request))


def _ended(request: SentRequest) -> float:
    return request.time + request.seconds
