"""The API server as programs in pods call it: their requests have their own credentials, not the kubelet's."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class ApiResponse(NamedTuple):
    status: int
    body: bytes


class ApiServer(Protocol):
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
        """Send a request with the credentials in its headers, or a certificate and its key; return None without a response."""

    async def authority(self, namespace: str) -> bytes:
        """Return the CA certificates of the API server, as the pods of a namespace know them."""

    async def admin_policy(self) -> str:
        """Return the kind and name of a policy of administrators, which no network simulates; "" if there is none."""
