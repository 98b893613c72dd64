"""The ServiceAccount controller: it creates the ServiceAccount `default` if it is missing."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import NAMESPACES, SERVICE_ACCOUNTS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Create, Plan
from mockube.controller_manager.control.controller import Controller, Watch, key_of_existing_object

ACCOUNT: Final = "default"


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    """Create the ServiceAccount of a namespace; `key` is the namespace's."""
    namespace = caches.of(NAMESPACES).get("", key.name)
    if namespace is None or meta.is_deleting(namespace):
        return EMPTY_PLAN
    if caches.of(SERVICE_ACCOUNTS).get(key.name, ACCOUNT) is not None:
        return EMPTY_PLAN
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": key.name},
    }
    return Plan(actions=(Create(resource=SERVICE_ACCOUNTS, bodies=(account,)),))


def _namespace_of_account(_: Caches, change: Change) -> Iterable[Key]:
    """Return the key of the namespace whose default ServiceAccount was deleted."""
    is_deleted = change.new is None and meta.name(change.last_known) == ACCOUNT
    return (Key("", meta.namespace(change.last_known)),) if is_deleted else ()


SERVICE_ACCOUNT: Final = Controller(
    name="serviceaccount-controller",
    queue="serviceaccount",
    service_account="service-account-controller",
    watches=(
        Watch(resource=NAMESPACES, keys=key_of_existing_object),
        Watch(resource=SERVICE_ACCOUNTS, keys=_namespace_of_account),
    ),
    reconcile=reconcile,
    workers=1,
)
