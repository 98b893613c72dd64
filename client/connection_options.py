"""The flags that name an API server: its kubeconfig or address, the rate of requests, the credentials."""

from pathlib import Path
from typing import Annotated

from msgspec import Struct

from mockube.component_base.flags import Flag, boolean, non_negative_int, positive


class ClientConnectionOptions(Struct, frozen=True, kw_only=True):
    """API server"""

    kubeconfig: Annotated[
        Path | None, Flag("kubeconfig of the API server ($KUBECONFIG)", Path, metavar="FILE")
    ] = None
    master: Annotated[str, Flag("address of the API server, instead of the kubeconfig's", metavar="URL")] = ""
    kube_api_qps: Annotated[
        float | None,
        Flag("requests a second of each controller (20; no limit for a server on this machine)", positive),
    ] = None
    kube_api_burst: Annotated[
        int | None,
        Flag(
            "burst of requests of each controller (30; no limit for a server on this machine)",
            non_negative_int,
        ),
    ] = None
    use_service_account_credentials: Annotated[
        bool, Flag("run each controller with its own service account (false)", boolean)
    ] = False
