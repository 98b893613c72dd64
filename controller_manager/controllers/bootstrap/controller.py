"""The controllers that sign the ConfigMap cluster-info, and delete expired bootstrap tokens. Both are off by default."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import CONFIG_MAPS, SECRETS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Delete, ObjectRef, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch

from .tokens import BY_TYPE, TYPE, by_type, detached_signature, is_token, remaining_lifetime, signing_key

CLUSTER_INFO: Final = Key("kube-public", "cluster-info")
_CONTENT, _SIGNATURE = "kubeconfig", "jws-kubeconfig-"


def reconcile_cluster_info(caches: Caches, key: Key, now: datetime) -> Plan:
    config_map = caches.of(CONFIG_MAPS).get(*key)
    data = (config_map or {}).get("data") or {}
    if config_map is None or _CONTENT not in data:
        return EMPTY_PLAN
    tokens = caches.of(SECRETS).by_index(BY_TYPE, TYPE)
    signed_data = _sign(
        data, dict(signing_pair for secret in tokens if (signing_pair := signing_key(secret, now)))
    )
    if signed_data == data:
        return EMPTY_PLAN
    return Plan(actions=(Update(resource=CONFIG_MAPS, body={**config_map, "data": signed_data}),))


def _sign(data: ReadOnlyTree, keys: dict[str, bytes]) -> dict[str, str]:
    """Return the data with the signatures of these tokens only."""
    others = {name: value for name, value in data.items() if not name.startswith(_SIGNATURE)}
    content = data[_CONTENT]
    return others | {
        f"{_SIGNATURE}{token}": detached_signature(content, token, key) for token, key in keys.items()
    }


def reconcile_token(caches: Caches, key: Key, now: datetime) -> Plan:
    secret = caches.of(SECRETS).get(*key)
    if secret is None or not is_token(secret):
        return EMPTY_PLAN
    remaining = remaining_lifetime(secret, now)
    if remaining == timedelta():
        return Plan(actions=(Delete(resource=SECRETS, objects=(ObjectRef.of(secret),)),))
    return Plan(requeue_after=remaining)


def _cluster_info_of_secret(_: Caches, change: Change) -> Iterable[Key]:
    return (CLUSTER_INFO,) if is_token(change.last_known) else ()


def _cluster_info(_: Caches, change: Change) -> Iterable[Key]:
    return (CLUSTER_INFO,) if Key.of(change.last_known) == CLUSTER_INFO else ()


def _token_key(_: Caches, change: Change) -> Iterable[Key]:
    return (Key.of(change.new),) if change.new is not None and is_token(change.new) else ()


BOOTSTRAP_SIGNER: Final = Controller(
    name="bootstrap-signer-controller",
    queue="bootstrap_signer_queue",
    service_account="bootstrap-signer",
    watches=(
        Watch(resource=CONFIG_MAPS, keys=_cluster_info),
        Watch(resource=SECRETS, keys=_cluster_info_of_secret),
    ),
    indexes={SECRETS: {BY_TYPE: by_type}},
    reconcile=reconcile_cluster_info,
    workers=1,
)
TOKEN_CLEANER: Final = Controller(
    name="token-cleaner-controller",
    queue="token_cleaner",
    service_account="token-cleaner",
    watches=(Watch(resource=SECRETS, keys=_token_key),),
    reconcile=reconcile_token,
    workers=1,
)
