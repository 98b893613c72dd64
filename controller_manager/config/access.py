"""How the API server is reached: from the settings to an `Access`, and to a limit of requests."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from controller_manager.config.settings import Server
from controller_manager.runtime.kubeconfig import Access, read
from controller_manager.runtime.token_bucket import Rate

UPSTREAM = Rate(qps=20.0, burst=30)
"""For a server elsewhere, which others share. One on this machine is there for us."""


def access_of(server: Server) -> Access:
    if server.kubeconfig is None:
        return Access(server=server.master)
    return read(server.kubeconfig, master=server.master)


def rate_of(server: Server, access: Access) -> Rate | None:
    if server.kube_api_qps is None and server.kube_api_burst is None and _is_here(access.server):
        return None
    return Rate(
        qps=UPSTREAM.qps if server.kube_api_qps is None else server.kube_api_qps,
        burst=UPSTREAM.burst if server.kube_api_burst is None else server.kube_api_burst,
    )


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
