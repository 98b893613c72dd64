"""The token controller: it fills in the token Secrets of service accounts, and deletes those of deleted accounts.

It does nothing without `--service-account-private-key-file`, like upstream.
"""

import base64
import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.component import IdleRunner, Runner
from mockube.client.kinds import SECRETS, SERVICE_ACCOUNTS
from mockube.client.kubeconfig import access_of
from mockube.client.resources import Key
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.control.actions import EMPTY_PLAN, Confirm, Delete, ObjectRef, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.runner import ControllerRunner

from .signing import SignToken, claims_of, token_signer

LOG = logging.getLogger(__name__)

NAME: Final = "serviceaccount-token-controller"
TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_BY_ACCOUNT, _BY_REFERENCE = "service-account", "referenced-secret"


class TokenIssuer(Struct, frozen=True, kw_only=True):
    """The signer of tokens, and the CA certificate for the Secrets."""

    sign: SignToken
    authority: bytes
    """The CA of the server's certificate, in PEM."""


def reconcile(issuer: TokenIssuer, caches: Caches, key: Key, _: datetime) -> Plan:
    """Fill in or delete a token Secret, or remove references to it; `key` is the Secret's."""
    secret = caches.of(SECRETS).get(*key)
    if secret is None or secret.get("type") != TYPE:
        return _plan_reference_removal(caches, key) if secret is None else EMPTY_PLAN
    name = meta.annotations(secret).get(ACCOUNT, "")
    account = caches.of(SERVICE_ACCOUNTS).get(key.namespace, name)
    if account is None or not _belongs_to(secret, account):
        # The account may have been created a moment ago.
        confirm = Confirm(
            resource=SERVICE_ACCOUNTS,
            namespace=key.namespace,
            name=name,
            holds=partial(_belongs_to_none, secret),
        )
        return Plan(actions=(confirm, Delete(resource=SECRETS, objects=(ObjectRef.of(secret),))))
    missing = _missing_data(issuer, account, secret)
    if not missing:
        return EMPTY_PLAN
    annotations = {ACCOUNT: name, ACCOUNT_UID: meta.uid(account)}
    body = {**secret, "data": {**(secret.get("data") or {}), **missing}}
    return Plan(actions=(Update(resource=SECRETS, body=meta.with_annotations(body, annotations)),))


def _missing_data(issuer: TokenIssuer, account: ReadOnlyTree, secret: ReadOnlyTree) -> dict[str, str]:
    data = secret.get("data") or {}
    authority = _encode(issuer.authority)
    missing = {}
    if authority and data.get("ca.crt") != authority:
        missing["ca.crt"] = authority
    if not data.get("namespace"):
        missing["namespace"] = _encode(meta.namespace(secret).encode())
    if not data.get("token"):
        missing["token"] = _encode(issuer.sign(claims_of(account, secret)).encode())
    return missing


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _belongs_to(secret: ReadOnlyTree, account: ReadOnlyTree) -> bool:
    """Return whether a Secret belongs to an account: another account may have the name now."""
    return meta.annotations(secret).get(ACCOUNT_UID) in (None, "", meta.uid(account))


def _belongs_to_none(secret: ReadOnlyTree, accounts: Sequence[ReadOnlyTree]) -> bool:
    return not any(_belongs_to(secret, account) for account in accounts)


def _plan_reference_removal(caches: Caches, secret: Key) -> Plan:
    """Return the plan that removes a deleted Secret from the accounts that refer to it."""
    accounts = caches.of(SERVICE_ACCOUNTS).by_index(_BY_REFERENCE, str(secret))
    return Plan(actions=tuple(_remove_secret(account, secret.name) for account in accounts))


def _remove_secret(account: ReadOnlyTree, name: str) -> Update:
    remaining = [reference for reference in account["secrets"] if reference.get("name") != name]
    return Update(resource=SERVICE_ACCOUNTS, body={**account, "secrets": remaining})


def _account_of_secret(secret: Any) -> Iterator[str]:
    if secret.get("type") == TYPE:
        yield f"{meta.namespace(secret)}/{meta.annotations(secret).get(ACCOUNT, '')}"


def _secrets_of_account(account: Any) -> Iterator[str]:
    return (
        f"{meta.namespace(account)}/{reference.get('name', '')}" for reference in account.get("secrets") or ()
    )


def _secret_key(_: Caches, change: Change) -> Iterable[Key]:
    return (Key.of(change.last_known),) if change.last_known.get("type") == TYPE else ()


def _secrets_of_deleted_account(caches: Caches, change: Change) -> Iterable[Key]:
    is_recreated = (
        change.old is not None and change.new is not None and meta.uid(change.old) != meta.uid(change.new)
    )
    if change.new is not None and not is_recreated:
        return ()
    secrets = caches.of(SECRETS).by_index(_BY_ACCOUNT, str(Key.of(change.last_known)))
    return [Key.of(secret) for secret in secrets]


def service_account_tokens(issuer: TokenIssuer) -> Controller:
    return Controller(
        name=NAME,
        queue="serviceaccount_tokens_secret",
        service_account="",
        watches=(
            Watch(resource=SECRETS, keys=_secret_key),
            Watch(resource=SERVICE_ACCOUNTS, keys=_secrets_of_deleted_account),
        ),
        indexes={
            SECRETS: {_BY_ACCOUNT: _account_of_secret},
            SERVICE_ACCOUNTS: {_BY_REFERENCE: _secrets_of_account},
        },
        reconcile=partial(reconcile, issuer),
        workers=5,
    )


def _authority(options: Config) -> bytes:
    file = options.controllers.root_ca_file
    return file.read_bytes() if file is not None else access_of(options.server).authority


def _build(context: Context) -> Runner:
    file = context.options.controllers.service_account_private_key_file
    if file is None:
        LOG.info("%s is disabled: there is no --service-account-private-key-file", NAME)
        return IdleRunner(context.clock)
    issuer = TokenIssuer(sign=token_signer(file.read_bytes()), authority=_authority(context.options))
    return ControllerRunner(service_account_tokens(issuer), context)


SERVICE_ACCOUNT_TOKENS: Final = Runnable(name=NAME, service_account="", build=_build)
"""It runs with the identity of the process, like upstream: that may write Secrets, and no controller's account may."""
