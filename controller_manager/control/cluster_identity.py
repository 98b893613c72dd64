"""Detect that the server holds another cluster than before: its store was emptied, or replaced by a snapshot.

The uid of the namespace kube-system identifies a cluster. When it changes, the state of controllers is invalid (own
writes, series of events, registered nodes), so all work ends and starts with empty caches, as after a restart of the
process.
"""

import asyncio
import logging
from collections.abc import Coroutine

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.client.cache.informer import Informer
from mockube.client.cache.store import Change
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import start, timeout

LOG = logging.getLogger(__name__)


class ClusterIdentity:
    """The uid of the server's kube-system namespace, and whether it has changed."""

    def __init__(self, namespaces: Informer[ReadOnlyTree]) -> None:
        self._uid = ""
        self._changed = asyncio.Event()
        namespaces.add_handler(self._observe)

    async def run_until_changed(
        self, work: Coroutine[None, None, None], *, clock: Clock, shutdown_timeout: float
    ) -> None:
        """Run the work until it fails or this is cancelled, or until it has to restart: then return.

        It restarts when the server has another cluster, and when `restart` is called.

        Cancelled work may take another `shutdown_timeout` seconds.
        """
        work_task = start("work in one cluster", work, endless=True)
        change_task = start("identity of the cluster", self._changed.wait())
        error: BaseException | None = None
        try:
            await asyncio.wait({work_task, change_task}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException as raised:  # noqa: BLE001 - it is raised after the work has ended
            error = raised
        change_task.cancel()
        while not work_task.done():
            work_task.cancel()
            try:
                async with timeout(clock, shutdown_timeout):
                    await asyncio.wait({work_task})
            except TimeoutError:
                LOG.warning(
                    "Reconciliations in progress did not finish within %g seconds and are cancelled",
                    shutdown_timeout,
                )
            except asyncio.CancelledError as raised:
                error = error or raised
        for task in (work_task, change_task):
            if task.done() and not task.cancelled():
                task.result()
        if error is not None:
            raise error

    def restart(self) -> None:
        """End the work as if the cluster had changed, for another reason."""
        self._changed.set()

    def _observe(self, change: Change) -> None:
        namespace = change.new
        if namespace is None or meta.name(namespace) != NAMESPACE_SYSTEM:
            return
        uid = meta.uid(namespace)
        if self._uid and uid != self._uid and not self._changed.is_set():
            LOG.warning(
                "The server holds another cluster: namespace %s had uid %s and has %s. All work restarts",
                NAMESPACE_SYSTEM,
                self._uid,
                uid,
            )
            self._changed.set()
        self._uid = uid
