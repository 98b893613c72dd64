"""The ConfigMap that says where this machine publishes what: `mockube url` reads it."""

import os
from datetime import timedelta
from typing import Final

from mockube.apimachinery.status import AlreadyExists, NotFound
from mockube.client.cache.store import Change
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key

from . import limits
from .bindings import ADDRESS, LOAD_BALANCERS, RECORD
from .settings import PublisherContext

_DELAY: Final = timedelta(milliseconds=50)
"""Many ports that change together lead to one write."""


class Record:
    def __init__(self, context: PublisherContext, loop: ReconcileLoop) -> None:
        self._client = context.client
        self._config_maps = context.informers.of(CONFIG_MAPS)
        self._loop = loop
        self._pid = os.getpid()
        settings = context.settings
        self._data = (
            {ADDRESS: settings.address, LOAD_BALANCERS: settings.balancers} if settings.is_enabled else {}
        )
        self._config_maps.add_handler(self._on_change)

    async def wait_synced(self) -> None:
        await self._config_maps.wait_synced()
        self._loop.add(RECORD)

    def note(self, key: str, value: str) -> bool:
        """Note the value of a key, none if it is empty; return whether that is new."""
        if not value:
            return self.forget(key)
        if self._data.get(key) == value:
            return False
        if len(self._data) < limits.MAX_RECORDS or key in self._data:
            self._data[key] = value
            self._loop.add_coalesced(RECORD, _DELAY)
        return True

    def forget(self, key: str) -> bool:
        if self._data.pop(key, None) is None:
            return False
        self._loop.add_coalesced(RECORD, _DELAY)
        return True

    def _on_change(self, change: Change) -> None:
        if Key.of(change.last_known) == RECORD:
            self._loop.add(RECORD)

    async def write(self) -> timedelta | None:
        """Write the ConfigMap if it differs; delete it if nothing is published."""
        present = self._config_maps.lister.get(*RECORD)
        if not self._data or self._pid != os.getpid():  # a fork publishes nothing
            if present is not None:
                await self._client.delete(CONFIG_MAPS, RECORD)
            return None
        stored = {} if present is None else present.get("data") or {}
        if stored == self._data:
            return None
        data = {**dict.fromkeys(stored), **self._data}
        try:
            await self._client.patch(CONFIG_MAPS, RECORD, {"data": data})
        except NotFound:
            metadata = {"name": RECORD.name, "namespace": RECORD.namespace}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self._data}
            try:
                await self._client.create(CONFIG_MAPS, body)
            except AlreadyExists:
                return timedelta(seconds=1)
        return None
