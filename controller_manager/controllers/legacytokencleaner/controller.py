"""Mark unused tokens of service accounts as invalid, and delete those that have been marked for long. Once a day."""

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.pods import secret_names
from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.control.runnable import Context, Runnable

LOG = logging.getLogger(__name__)

PERIOD: Final = 86400.0
TRACKING: Final = Key("kube-system", "kube-apiserver-legacy-service-account-token-tracking")
LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
TYPE: Final = "kubernetes.io/service-account-token"
BY_TYPE: Final = "legacyTokens"
_ACCOUNT, _ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class UnusedToken(NamedTuple):
    secret: ReadOnlyTree
    is_marked: bool
    """It has been marked as invalid for long enough, too, and is to be deleted; else it is to be marked."""


def unused_tokens(caches: Caches, now: datetime, max_unused: timedelta) -> Iterator[UnusedToken]:
    """Tokens to mark or delete now; `max_unused` is how long a token may stay unused."""
    mounted: dict[str, frozenset[str]] = {}
    last_day = _text(now - max_unused)
    for secret in caches.of(SECRETS).by_index(BY_TYPE, TYPE):
        if not _is_unused(secret, now - max_unused, last_day) or not _was_made_by_itself(caches, secret):
            continue
        namespace = meta.namespace(secret)
        if namespace not in mounted:
            mounted[namespace] = _secrets_of_pods(caches, namespace)
        since = meta.labels(secret).get(INVALID_SINCE, "")
        is_marked = _day(since) is not None
        if meta.name(secret) not in mounted[namespace] and not (is_marked and since >= last_day):
            yield UnusedToken(secret, is_marked)


def tracked_since(config_map: ReadOnlyTree) -> datetime | None:
    """The end of the day on which the server began to note when tokens are used."""
    day = _day((config_map.get("data") or {}).get("since", ""))
    return None if day is None else day + timedelta(days=1)


def _is_unused(secret: ReadOnlyTree, time: datetime, last_day: str) -> bool:
    created = meta.metadata(secret).get("creationTimestamp")
    if meta.is_deleting(secret) or created is None or parse_time(created) >= time:
        return False
    used = meta.labels(secret).get(LAST_USED)
    return used is None or (_day(used) is not None and used < last_day)


def _was_made_by_itself(caches: Caches, secret: ReadOnlyTree) -> bool:
    """Such a token is listed in its account."""
    marks = meta.annotations(secret)
    account = caches.of(SERVICE_ACCOUNTS).get(meta.namespace(secret), marks.get(_ACCOUNT, ""))
    if account is None or marks.get(_ACCOUNT_UID, "") not in ("", meta.uid(account)):
        return False
    return any(reference.get("name") == meta.name(secret) for reference in account.get("secrets") or ())


def _secrets_of_pods(caches: Caches, namespace: str) -> frozenset[str]:
    pods = caches.of(PODS).in_namespace(namespace)
    return frozenset(name for pod in pods for name in secret_names(pod.object.get("spec") or {}) if name)


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _text(time: datetime) -> str:
    return time.date().isoformat()


def _by_type(secret: Any) -> Iterator[str]:
    if secret.get("type") == TYPE:
        yield TYPE


class LegacyTokenCleaner:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        options = context.options.controllers
        self._max_unused = timedelta(seconds=options.legacy_service_account_token_clean_up_period)
        self._informers = context.informers
        self._informers.of(SECRETS).add_index(BY_TYPE, _by_type)

    async def run(self) -> None:
        for informer in [self._informers.of(resource) for resource in (SECRETS, SERVICE_ACCOUNTS, PODS)]:
            await informer.wait_synced()
        while True:
            try:
                await self._clean(self._clock.now())
            except (ApiError, NoAnswer) as error:
                LOG.warning("unable to read the date since which the use of tokens is recorded: %s", error)
            await self._clock.sleep(PERIOD)

    async def _clean(self, now: datetime) -> None:
        since = tracked_since(await self._client.get(CONFIG_MAPS, TRACKING))
        if since is None:
            LOG.error("ConfigMap %s has no date since which the use of tokens is recorded", TRACKING)
        elif now >= since + self._max_unused:
            for token in [*unused_tokens(self._informers.caches, now, self._max_unused)]:
                try:
                    await (self._delete(token.secret) if token.is_marked else self._mark(token.secret, now))
                except (NotFound, Conflict):
                    continue
                except (ApiError, NoAnswer) as error:
                    LOG.warning("unable to clean Secret %s: %s", Key.of(token.secret), error)

    async def _mark(self, secret: ReadOnlyTree, now: datetime) -> None:
        LOG.info("Secret %s is marked as invalid: its token is not used", Key.of(secret))
        body = {
            "kind": SECRETS.kind,
            "apiVersion": SECRETS.api_version,
            "metadata": {
                "name": meta.name(secret),
                "namespace": meta.namespace(secret),
                "uid": meta.uid(secret),
                "labels": {INVALID_SINCE: _text(now)},
            },
        }
        await self._client.patch(SECRETS, Key.of(secret), body)

    async def _delete(self, secret: ReadOnlyTree) -> None:
        LOG.info("Secret %s is deleted: its token is not used", Key.of(secret))
        version = meta.resource_version(secret)
        await self._client.delete(SECRETS, Key.of(secret), resource_version=version)


LEGACY_TOKEN_CLEANER: Final = Runnable(
    name="legacy-serviceaccount-token-cleaner-controller",
    service_account="legacy-service-account-token-cleaner",
    build=LegacyTokenCleaner,
)
