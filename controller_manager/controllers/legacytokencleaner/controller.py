"""The legacy token cleaner: once a day it marks unused tokens as invalid, and deletes those marked long ago."""

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
from mockube.client import kinds
from mockube.client.cache.store import Caches
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context, Runnable

LOG = logging.getLogger(__name__)

_PERIOD_SECONDS: Final = 86400.0
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
    """Whether it was marked as invalid long enough ago and is deleted; otherwise it is marked."""


def unused_tokens(caches: Caches, now: datetime, max_unused: timedelta) -> Iterator[UnusedToken]:
    """Yield the tokens to mark or delete now; `max_unused` is how long a token may stay unused."""
    mounted: dict[str, frozenset[str]] = {}
    last_day = _date_text(now - max_unused)
    for secret in caches.of(kinds.SECRETS).by_index(BY_TYPE, TYPE):
        if not _is_unused(secret, now - max_unused, last_day) or not _is_auto_generated(caches, secret):
            continue
        namespace = meta.namespace(secret)
        if namespace not in mounted:
            mounted[namespace] = _secrets_of_pods(caches, namespace)
        since = meta.labels(secret).get(INVALID_SINCE, "")
        is_marked = _day(since) is not None
        if meta.name(secret) not in mounted[namespace] and not (is_marked and since >= last_day):
            yield UnusedToken(secret, is_marked)


def tracked_since(config_map: ReadOnlyTree) -> datetime | None:
    """Return the end of the day since which the server records the use of tokens; None if it is unknown."""
    day = _day((config_map.get("data") or {}).get("since", ""))
    return None if day is None else day + timedelta(days=1)


def _is_unused(secret: ReadOnlyTree, time: datetime, last_day: str) -> bool:
    created = meta.metadata(secret).get("creationTimestamp")
    if meta.is_deleting(secret) or created is None or parse_time(created) >= time:
        return False
    used = meta.labels(secret).get(LAST_USED)
    return used is None or (_day(used) is not None and used < last_day)


def _is_auto_generated(caches: Caches, secret: ReadOnlyTree) -> bool:
    """Return whether a token was generated automatically: its account lists such Secrets."""
    annotations = meta.annotations(secret)
    account = caches.of(kinds.SERVICE_ACCOUNTS).get(meta.namespace(secret), annotations.get(_ACCOUNT, ""))
    if account is None or annotations.get(_ACCOUNT_UID, "") not in ("", meta.uid(account)):
        return False
    return any(reference.get("name") == meta.name(secret) for reference in account.get("secrets") or ())


def _secrets_of_pods(caches: Caches, namespace: str) -> frozenset[str]:
    pods = caches.of(kinds.PODS).in_namespace(namespace)
    return frozenset(name for pod in pods for name in secret_names(pod.object.get("spec") or {}) if name)


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _date_text(time: datetime) -> str:
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
        self._informers.of(kinds.SECRETS).add_index(BY_TYPE, _by_type)

    async def run(self) -> None:
        for informer in [
            self._informers.of(resource) for resource in (kinds.SECRETS, kinds.SERVICE_ACCOUNTS, kinds.PODS)
        ]:
            await informer.wait_synced()
        while True:
            try:
                await self._clean(self._clock.now())
            except (ApiError, NoResponse) as error:
                LOG.warning("unable to read ConfigMap %s: %s", TRACKING, error)
            has_tokens = self._informers.of(kinds.SECRETS).lister.index_counts(BY_TYPE)
            await (self._clock if has_tokens else self._clock.routine).sleep(_PERIOD_SECONDS)

    async def _clean(self, now: datetime) -> None:
        since = tracked_since(await self._client.get(kinds.CONFIG_MAPS, TRACKING))
        if since is None:
            LOG.error(
                'ConfigMap %s has no valid date in its field "since": unused tokens are not deleted', TRACKING
            )
        elif now >= since + self._max_unused:
            for token in [*unused_tokens(self._informers.caches, now, self._max_unused)]:
                try:
                    await (self._delete(token.secret) if token.is_marked else self._mark(token.secret, now))
                except (NotFound, Conflict):  # it was used or changed since: the next round decides anew
                    continue
                except (ApiError, NoResponse) as error:
                    LOG.warning("unable to clean Secret %s: %s", Key.of(token.secret), error)

    async def _mark(self, secret: ReadOnlyTree, now: datetime) -> None:
        LOG.info("marking Secret %s as invalid: its token is not used", Key.of(secret))
        body = {
            "kind": kinds.SECRETS.kind,
            "apiVersion": kinds.SECRETS.api_version,
            "metadata": {
                "name": meta.name(secret),
                "namespace": meta.namespace(secret),
                "uid": meta.uid(secret),
                "labels": {INVALID_SINCE: _date_text(now)},
            },
        }
        await self._client.patch(kinds.SECRETS, Key.of(secret), body)

    async def _delete(self, secret: ReadOnlyTree) -> None:
        LOG.info("deleting Secret %s: its token is not used", Key.of(secret))
        version = meta.resource_version(secret)
        await self._client.delete(kinds.SECRETS, Key.of(secret), resource_version=version)


LEGACY_TOKEN_CLEANER: Final = Runnable(
    name="legacy-serviceaccount-token-cleaner-controller",
    service_account="legacy-service-account-token-cleaner",
    build=LegacyTokenCleaner,
)
