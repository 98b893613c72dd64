"""The API server of a control plane inside: real HTTPS on a free port of this machine, a store in memory, two users.

The administrator authenticates by the kubeconfig; mockube's controllers by a token of their own, so that their requests
can be distinguished, and without a socket.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, redirect_stderr
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.packs.definitions import PACKS
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.schema import minors
from mockube.apiserver.app import ApiServer
from mockube.apiserver.config.command_line import Config, parse
from mockube.apiserver.config.features import Features
from mockube.apiserver.config.settings import Admission, Serving
from mockube.apiserver.http.server import Listener, bind
from mockube.apiserver.pki.cert_dir import MANAGER_GROUP
from mockube.apiserver.request.filter import Middleware
from mockube.apiserver.running import Dependencies, running
from mockube.apiserver.serving_credentials import TOKEN_BYTES, Credentials, gather
from mockube.apiserver.user import AUTHENTICATED, User
from mockube.controller_manager.client.kubeconfig import Access
from mockube.embedded.direct import DirectTransport
from mockube.embedded.matching import CONTROLLERS
from mockube.processes.control_plane import NODE_RESTRICTION, plugin_flags

LOOPBACK: Final = "127.0.0.1"
KUBECONFIG: Final = "kubeconfig"
"""The file's name."""
GRACE_SECONDS: Final = 0.02
"""How long shutdown waits for current work: its results are no longer used."""


class Site(Struct, frozen=True, kw_only=True):
    """A server that runs, and how it is reached."""

    server: ApiServer
    kubeconfig: Path
    authority: Path
    """The server's CA certificate, as a file."""
    admin: Access
    controllers: Access

    def transport(self, _: Access) -> DirectTransport:
        return DirectTransport(self.server.handler.handle, self.server.registry.clock)


@asynccontextmanager
async def serving(
    config: Config, folder: Path, *, clock: Clock, random: Random, middleware: Middleware
) -> AsyncIterator[Site]:
    """`middleware` is called around every request. All files are in the folder, which is the caller's to remove."""
    credentials = gather(config, "", now=clock.now(), random=random)
    token = random.bytes(TOKEN_BYTES).hex()
    with bind(config.serving.bind_address, config.serving.secure_port) as socket:
        listener = Listener(socket=socket, tls=credentials.tls)
        dependencies = Dependencies(
            listeners=[listener],
            credentials=_known_to(credentials, token),
            clock=clock,
            random=random,
            drain_seconds=GRACE_SECONDS,
            middleware=middleware,
            has_manager_inside=True,
        )
        async with running(config, dependencies) as server:
            has_roles = asyncio.Event()
            server.bootstrap_roles.when_ready(has_roles.set)
            await has_roles.wait()  # without them the controllers would be refused at first
            url, path, authority = (
                f"https://{LOOPBACK}:{listener.port}",
                folder / KUBECONFIG,
                folder / "ca.crt",
            )
            credentials.write_kubeconfig(path, url)
            authority.write_bytes(credentials.server_ca)
            yield Site(
                server=server,
                kubeconfig=path,
                authority=authority,
                admin=Access(server=url, authority=credentials.server_ca, token=credentials.admin_token),
                controllers=Access(server=url, authority=credentials.server_ca, token=token),
            )


def server_config(
    folder: Path, *, packs: str, flags: Sequence[str], metrics: bool = False, minor: str = minors.NEWEST
) -> Config:
    """With `metrics`, those of pods and nodes are simulated. Raises ValueError with the error of the server's command line for invalid flags."""
    certificates = folder / "pki"
    if not flags and packs in (
        "",
        *PACKS,
    ):  # the same, without a command line, which takes a while to put together
        features = Features(
            kubernetes_version=minor, packs=tuple(filter(None, [packs])), simulate_metrics=metrics
        )
        admission = Admission(enable_admission_plugins=(NODE_RESTRICTION,))
        serving = Serving(secure_port=0, cert_dir=certificates)
        return Config(serving=serving, features=features, admission=admission)
    own = (
        *("--secure-port", "0", "--cert-dir", str(certificates), "--packs", packs),
        *("--kubernetes-version", minor),
        *("--simulate-metrics", str(metrics).lower(), *plugin_flags(flags)),
    )
    return parse_flags(lambda: parse((*own, *flags), {}))


def _known_to(credentials: Credentials, token: str) -> Credentials:
    """A server that authenticates the controllers as well."""
    controllers = User(name=CONTROLLERS, groups=(MANAGER_GROUP, AUTHENTICATED))
    trust = replace(credentials.trust, tokens={**credentials.trust.tokens, token: controllers})
    return replace(credentials, trust=trust)


T = TypeVar("T")


def parse_flags(parse: Callable[[], T]) -> T:
    """Call a parser of flags; raise ValueError with its message if it exits."""
    error_output = io.StringIO()
    try:
        with redirect_stderr(error_output):
            return parse()
    except SystemExit as error:
        raise ValueError(error_output.getvalue().strip()) from error
