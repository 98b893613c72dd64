"""The controller manager's client, connected to a server in the test's own loop."""

import contextlib

from mockube.component_base.clock import RealClock
from mockube.controller_manager.client.connect import ClientOptions, connect
from mockube.controller_manager.client.kubeconfig import Access


@contextlib.asynccontextmanager
async def client_of(url, *, token="admin", clock=None, **options):
    access = Access(server=url, token=token)
    async with connect(ClientOptions(access=access, clock=clock or RealClock(), **options)) as client:
        yield client
