"""The API server for the programs of simulated pods (`ApiServer`): their requests have their own credentials, not the kubelet's."""

from collections.abc import Sequence
from contextlib import suppress
from ssl import SSLError
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse, Request
from mockube.container_runtime.api_server import ApiResponse

from .pod_objects import ROOT_CA

_ADMIN_GROUP: Final = "policy.networking.k8s.io"
_ADMIN_POLICIES: Final = ("adminnetworkpolicies", "baselineadminnetworkpolicies", "clusternetworkpolicies")
_REQUEST_SECONDS: Final = 65.0
_HOP_HEADERS: Final = frozenset({"host", "connection", "content-length", "transfer-encoding", "user-agent"})


class ApiServerAccess:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def send(
        self,
        method: str,
        path: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        *,
        certificate: bytes = b"",
        key: bytes = b"",
    ) -> ApiResponse | None:
        forwarded = {name: value for name, value in headers if name.lower() not in _HOP_HEADERS}
        agent = next((value for name, value in headers if name.lower() == "user-agent"), "")
        sent = Request(
            method=method,
            target=path,
            headers=forwarded | ({"User-Agent": agent} if agent else {}),
            body=body,
            timeout=_REQUEST_SECONDS,
        )
        try:
            response = await self._client.exchange(sent, certificate, key)
        except (NoResponse, ValueError, SSLError):  # the certificate may belong to another key
            return None
        return ApiResponse(response.status, response.body)

    async def authority(self, namespace: str) -> bytes:
        try:
            config_map = await self._client.get(CONFIG_MAPS, Key(namespace, ROOT_CA))
        except (ApiError, NoResponse):
            return b""
        return str((config_map.get("data") or {}).get("ca.crt") or "").encode()

    async def admin_policy(self) -> str:
        with suppress(ApiError, NoResponse, KeyError):
            group = await self._client.raw("GET", f"/apis/{_ADMIN_GROUP}")
            version = group["preferredVersion"]["groupVersion"]
            for plural in _ADMIN_POLICIES:
                with suppress(NotFound):
                    policies = await self._client.raw("GET", f"/apis/{version}/{plural}?limit=1")
                    for policy in policies.get("items") or ():
                        return f"{policy.get('kind') or plural} {meta.name(policy)!r}"
        return ""
