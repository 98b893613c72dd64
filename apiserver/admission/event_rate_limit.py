"""EventRateLimit: limits the rate of Events of the whole server, a namespace, a user, or a source and object."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.status import TooManyRequests
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .configurations import ALL_EVENTS, EventLimit
from .plugin import WRITE, Plugin


def _event_key(event: ReadOnlyTree) -> str:
    source = event.get("source") or {}
    involved = event.get("involvedObject") or event.get("regarding") or {}
    parts = [source.get("component"), source.get("host")]
    names = ("kind", "namespace", "name", "uid", "apiVersion")
    return "".join(part or "" for part in (*parts, *map(involved.get, names)))


KEYS: Final[Mapping[str, Callable[[AdmissionAttributes], str]]] = {
    ALL_EVENTS: lambda _: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: attributes.context.user.name,
    "SourceAndObject": lambda attributes: _event_key(attributes.object or {}),
}


class _Bucket:
    """The tokens of one key, and the time when they were updated."""

    __slots__ = ("at", "tokens")

    def __init__(self, tokens: float, at: float) -> None:
        self.tokens = tokens
        self.at = at


class Enforcer:
    def __init__(self, limit: EventLimit) -> None:
        self._limit = limit
        self._key = KEYS[limit.type]
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def accept(self, attributes: AdmissionAttributes, now: float) -> str:
        """Take a token; return the error if there is none."""
        limit, key = self._limit, self._key(attributes)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(limit.burst, now)
            if len(self._buckets) > limit.cache_size:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        bucket.tokens = min(float(limit.burst), bucket.tokens + (now - bucket.at) * limit.qps)
        bucket.at = now
        if bucket.tokens < 1:
            return f"limit reached on type {limit.type} for key {key}"
        bucket.tokens -= 1
        return ""


class EventRateLimit(Plugin):
    operations = WRITE
    targets = frozenset({("", "events", ""), ("events.k8s.io", "events", "")})

    def __init__(self, limits: Sequence[EventLimit] = ()) -> None:
        self._enforcers = [Enforcer(limit) for limit in limits]

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        if attributes.dry_run:
            return
        now = backend.clock.monotonic()
        problems = [problem for enforcer in self._enforcers if (problem := enforcer.accept(attributes, now))]
        if problems:
            message = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
            raise TooManyRequests(f"Too many requests: {message}")
