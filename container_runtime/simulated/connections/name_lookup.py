"""How a server in a container looks a name up: in `/etc/hosts`, and at the name server of `/etc/resolv.conf`."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from mockube.apimachinery.hosts import is_address
from mockube.container_runtime.simulated.network.calls import Lookup, Reply
from mockube.container_runtime.simulated.shell.network_programs.network import hosts_in, resolver_settings_in
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.network.services import Outcome


class FoundAddress(Struct, frozen=True, kw_only=True):
    address: str = ""
    """The address; "" if there is none."""
    server: str = ""
    """The name server that was asked."""
    has_timed_out: bool = False


async def find_address(
    host: str, files: FileSystem, ask: Callable[[Lookup], Awaitable[Reply]]
) -> FoundAddress:
    """Return the first address of a host; `files` has the settings of names."""
    if is_address(host):
        return FoundAddress(address=host)
    for address, names in hosts_in(files):
        if host.lower() in names:
            return FoundAddress(address=address)
    settings = resolver_settings_in(files)
    for name in settings.queries(host):
        reply = await ask(Lookup(server=settings.server, name=name))
        if reply.outcome == Outcome.TIMEOUT.value:
            return FoundAddress(server=settings.server, has_timed_out=True)
        addresses = [value for _, record_type, value in reply.records if record_type == "A"]
        if addresses:
            return FoundAddress(address=addresses[0], server=settings.server)
    return FoundAddress(server=settings.server)
