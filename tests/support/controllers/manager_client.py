"""The controller manager's client, connected to a server in the test's own loop."""

import contextlib

from mockube.client.connect import ClientOptions, connect
from mockube.client.kubeconfig import Access
from mockube.component_base.clock import RealClock


@contextlib.asynccontextmanager
async def client_of(url, *, token="admin", clock=None, **options):
    access = Access(server=url, token=token)
    async with connect(ClientOptions(access=access, clock=clock or RealClock(), **options)) as client:
        yield client
