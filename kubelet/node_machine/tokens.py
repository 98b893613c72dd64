"""Bootstrap tokens, which kubeadm lists, creates and deletes as Secrets."""

import re
from base64 import b64decode
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from mockube.apimachinery import meta, randomness
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import AlreadyExists, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.client.kinds import SECRETS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.container_runtime.node_machine import ServiceFailed

_TYPE: Final = "bootstrap.kubernetes.io/token"
_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_MAX_SECONDS: Final = 3.2e9


class BootstrapTokens:
    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random

    async def list(self) -> list[dict[str, Any]]:
        secrets = await self._client.list(SECRETS, NAMESPACE_SYSTEM, field_selector=f"type={_TYPE}")
        return [self._entry(secret.get("data") or {}) for secret in secrets.items]

    def _entry(self, data: Any) -> dict[str, Any]:
        fields = {name: b64decode(value).decode("utf-8", "replace") for name, value in data.items()}
        usages = [
            name[len("usage-bootstrap-") :]
            for name, value in fields.items()
            if name.startswith("usage-") and value == "true"
        ]
        return {
            "token": f"{fields.get('token-id', '')}.{fields.get('token-secret', '')}",
            "expires": fields.get("expiration", ""),
            "usages": sorted(usages),
            "description": fields.get("description", ""),
            "groups": [group for group in fields.get("auth-extra-groups", "").split(",") if group],
        }

    def generate(self) -> str:
        return f"{randomness.suffix(self._random, 6)}.{randomness.suffix(self._random, 16)}"

    async def create(
        self, token: str, seconds: float, description: str, *, usages: Sequence[str], groups: Sequence[str]
    ) -> str:
        token = token or self.generate()
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise ServiceFailed(
                f'the bootstrap token "{token}" was not of the form "\\\\A([a-z0-9]{{6}})\\\\.([a-z0-9]{{16}})\\\\z"'
            )
        data = {
            "token-id": match[1], "token-secret": match[2], **{f"usage-bootstrap-{usage}": "true" for usage in usages},
            "auth-extra-groups": ",".join(groups), **({"description": description} if description else {}),
        }  # fmt: skip
        if seconds:
            data["expiration"] = format_time(
                self._clock.now() + timedelta(seconds=min(seconds, _MAX_SECONDS))
            )
        metadata = {"name": f"bootstrap-token-{match[1]}", "namespace": NAMESPACE_SYSTEM}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": _TYPE, "stringData": data}
        try:
            await self._client.create(SECRETS, body)
        except AlreadyExists as error:
            raise ServiceFailed(f'a token with id "{match[1]}" already exists') from error
        return token

    async def delete(self, token: str) -> None:
        name = f"bootstrap-token-{token.partition('.')[0]}"
        try:
            secret = await self._client.get(SECRETS, Key(NAMESPACE_SYSTEM, name))
            await self._client.delete(SECRETS, Key(NAMESPACE_SYSTEM, name), uid=meta.uid(secret))
        except NotFound as error:
            raise ServiceFailed(
                f'failed to delete bootstrap token "{token.partition(".")[0]}": secrets "{name}" not found'
            ) from error


def authority_hash(authority: bytes) -> str:
    """Return the hash of the public key of a CA, as kubeadm join pins it."""
    from cryptography import x509  # noqa: PLC0415 - rarely used
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415 - rarely used

    key = x509.load_pem_x509_certificate(authority).public_key()
    return f"sha256:{sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()}"
