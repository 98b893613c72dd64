"""The controller manager's client, connected to a server in the test's own loop."""

import contextlib

from apimachinery.clock import RealClock
from controller_manager.runtime.connect import Connection, connected
from controller_manager.runtime.kubeconfig import Access


@contextlib.asynccontextmanager
async def client_of(url, *, token="admin", clock=None, **wanted):
    access = Access(server=url, token=token)
    async with connected(Connection(access=access, clock=clock or RealClock(), **wanted)) as client:
        yield client
