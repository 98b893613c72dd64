"""Tokens of service accounts that Secrets hold: without an end, good as long as the Secret and the account are there."""

import base64
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.bearer import BadToken, KnownToken
from mockube.apiserver.authn.serviceaccount import jwt
from mockube.apiserver.authn.serviceaccount.accounts import Find, audience_problem
from mockube.apiserver.authn.serviceaccount.claims import (
    Account,
    Reference,
    audiences,
    split_username,
    time_problem,
    type_problem,
)
from mockube.apiserver.authn.serviceaccount.keys import Keys

ISSUER: Final = "kubernetes/serviceaccount"
_CLAIM: Final = "kubernetes.io/serviceaccount/"
_REQUIRED: Final = {
    "namespace": "namespace claim is missing",
    "secret.name": "secretName claim is missing",
    "service-account.name": "serviceAccountName claim is missing",
    "service-account.uid": "serviceAccountUID claim is missing",
}
_LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
_INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
LOG = logging.getLogger(__name__)

LabelSecret: TypeAlias = Callable[[str, str, Mapping[str, Any]], Awaitable[None]]
"""Patches a Secret, by namespace and name, with what to merge into it."""


class LegacyTokens:
    """`audiences` are the server's own, for which a token is meant that names none."""

    def __init__(
        self,
        keys: Keys,
        *,
        audiences: Sequence[str],
        find: Find,
        label: LabelSecret,
        clock: Clock,
    ) -> None:
        self._keys = keys
        self._audiences = audiences
        self._find = find
        self._label = label
        self._clock = clock

    async def read(self, token: str, audiences_: Sequence[str]) -> KnownToken | None:
        if jwt.issuer(token) != ISSUER:
            return None
        claims = jwt.verify(self._keys, token)
        if claims is None:
            return None
        if problem := type_problem(claims):
            raise BadToken(problem)
        token_audiences = audiences(claims) or self._audiences
        shared_audiences = [audience for audience in audiences_ if audience in token_audiences]
        if not shared_audiences:
            raise BadToken(audience_problem(token_audiences, audiences_))
        if problem := time_problem(claims, self._clock.now()):
            raise BadToken(problem)
        namespace, secret, name, uid = _names(claims)
        await self._check(token, namespace, secret, Reference(name, uid))
        account = Account(namespace=namespace, account=Reference(name, uid))
        return KnownToken(account.user(""), shared_audiences)

    async def _check(self, token: str, namespace: str, secret_name: str, account: Reference) -> None:
        secret = await self._find("secrets", namespace, secret_name)
        if secret is None or meta.is_deleting(secret):
            raise BadToken("Token has been invalidated")
        if not hmac.compare_digest(_stored_token(secret), token.encode()):
            raise BadToken("Token does not match server's copy")
        found = await self._find("serviceaccounts", namespace, account.name)
        if found is None:
            raise BadToken(f"serviceaccounts {gotext.quote(account.name)} not found")
        if meta.is_deleting(found):
            raise BadToken(f"ServiceAccount {namespace}/{account.name} has been deleted")
        if meta.uid(found) != account.uid:
            raise BadToken(f"ServiceAccount UID ({meta.uid(found)}) does not match claim ({account.uid})")
        await self._note_use(secret)
        if meta.labels(secret).get(_INVALID_SINCE):
            raise BadToken(
                f"the token in secret {namespace}/{secret_name} for service account {namespace}/{account.name} has been "
                "marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove "
                f"the '{_INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )

    async def _note_use(self, secret: Tree) -> None:
        """Label the Secret with the day, once on each."""
        now = self._clock.now()
        today, tomorrow = (f"{now + timedelta(days=days):%Y-%m-%d}" for days in (0, 1))
        if meta.labels(secret).get(_LAST_USED) in (today, tomorrow):
            return
        metadata = {"uid": meta.uid(secret), "labels": {_LAST_USED: today}}
        try:
            await self._label(meta.namespace(secret), meta.name(secret), {"metadata": metadata})
        except ApiError as error:
            name = f"{meta.namespace(secret)}/{meta.name(secret)}"
            problem = "Failed to label legacy service account token %s with last-used date: %s"
            LOG.warning(problem, name, error)


def _names(claims: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Namespace, secret, account and its uid, or BadToken."""
    subject = claims.get("sub")
    if not subject:
        raise BadToken("sub claim is missing")
    found: list[str] = []
    for name, problem in _REQUIRED.items():
        value = claims.get(f"{_CLAIM}{name}")
        if not isinstance(value, str) or not value:
            raise BadToken(problem)
        found.append(value)
    namespace, secret, account, uid = found
    if split_username(subject) != (namespace, account):
        raise BadToken("sub claim is invalid")
    return namespace, secret, account, uid


def _stored_token(secret: Tree) -> bytes:
    """Return the token in a Secret."""
    try:
        return base64.b64decode((secret.get("data") or {}).get("token") or "")
    except ValueError:
        return b""
