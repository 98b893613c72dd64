"""The API server of an in-process control plane: HTTPS on a free local port, and a store in memory.

The administrator uses the kubeconfig. mockube's controllers use a token of their own, so that their requests can be
distinguished, and send requests without a socket.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.randomness import Random
from mockube.apiserver.app import ApiServer
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.control.controllers import ReadControllers
from mockube.apiserver.control.matching import CONTROLLERS
from mockube.apiserver.http.server import Listener, bind
from mockube.apiserver.pki.cert_dir import MANAGER_GROUP
from mockube.apiserver.pki.issue import LEAF_YEARS
from mockube.apiserver.registry.component_statuses import EmbeddedProbe
from mockube.apiserver.running import Dependencies, running
from mockube.apiserver.serving_credentials import TOKEN_BYTES, Credentials, load_credentials
from mockube.apiserver.user import AUTHENTICATED, User
from mockube.client.kubeconfig import Access
from mockube.component_base.clock import Clock
from mockube.component_base.local_ports import LocalPorts

from .determinism import CERTIFICATE_YEARS, PORT
from .direct import DirectTransport

LOOPBACK: Final = "127.0.0.1"
KUBECONFIG: Final = "kubeconfig"
"""The name of the kubeconfig file."""
GRACE_SECONDS: Final = 0.02
"""The time that shutdown waits for requests in progress, whose responses are no longer used."""


class EmbeddedServer(Struct, frozen=True, kw_only=True):
    """A running API server, and the credentials of its clients."""

    api_server: ApiServer
    listener: Listener
    kubeconfig: Path
    authority: Path
    """The file of the server's CA certificate."""
    authority_bytes: bytes
    write_kubeconfig: Callable[[Path, str], None]
    """Write the administrator's kubeconfig to a path, for the server at a URL."""
    admin: Access
    controllers: Access

    def transport(self, _: Access) -> DirectTransport:
        return DirectTransport(self.api_server.handler.handle, self.api_server.registry.clock)


@asynccontextmanager
async def run_server(  # noqa: PLR0913 - each argument is a part
    config: Config,
    folder: Path,
    *,
    clock: Clock,
    random: Random,
    component_probes: Mapping[str, EmbeddedProbe],
    read_controllers: ReadControllers,
    local_ports: LocalPorts | None = None,
) -> AsyncIterator[EmbeddedServer]:
    """Run an API server; `component_probes` are called at requests for ComponentStatuses, `read_controllers` for Controllers.

    With `local_ports`, those of listeners of a cluster with a seed, objects and certificates are the same in each run.

    All files are in the folder, which the caller removes.
    """
    years = LEAF_YEARS if local_ports is None else CERTIFICATE_YEARS
    credentials = load_credentials(config, "", now=clock.now(), random=random, years=years)
    token = random.bytes(TOKEN_BYTES).hex()
    with bind(config.serving.bind_address, config.serving.secure_port) as socket:
        listener = Listener(socket=socket, tls=credentials.tls)
        dependencies = Dependencies(
            listeners=[listener],
            credentials=_with_controllers_token(credentials, token),
            clock=clock,
            random=random,
            drain_seconds=GRACE_SECONDS,
            has_embedded_manager=True,
            component_probes=component_probes,
            read_controllers=read_controllers,
            port_in_objects=0 if local_ports is None else PORT,
            local_ports={} if local_ports is None else local_ports,
        )
        async with running(config, dependencies) as server:
            has_roles = asyncio.Event()
            server.bootstrap_roles.when_ready(has_roles.set)
            await (
                has_roles.wait()
            )  # without the roles, the first requests of the controllers would be forbidden
            url, path, authority = (
                f"https://{LOOPBACK}:{listener.port}",
                folder / KUBECONFIG,
                folder / "ca.crt",
            )
            credentials.write_kubeconfig(path, url)
            authority.write_bytes(credentials.server_ca)
            yield EmbeddedServer(
                api_server=server,
                listener=listener,
                kubeconfig=path,
                authority=authority,
                authority_bytes=credentials.server_ca,
                write_kubeconfig=credentials.write_kubeconfig,
                admin=Access(server=url, authority=credentials.server_ca, token=credentials.admin_token),
                controllers=Access(server=url, authority=credentials.server_ca, token=token),
            )


def _with_controllers_token(credentials: Credentials, token: str) -> Credentials:
    """Return credentials that also authenticate the controllers by their token."""
    controllers = User(name=CONTROLLERS, groups=(MANAGER_GROUP, AUTHENTICATED))
    trust = replace(credentials.trust, tokens={**credentials.trust.tokens, token: controllers})
    return replace(credentials, trust=trust)
