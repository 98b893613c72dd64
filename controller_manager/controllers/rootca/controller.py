"""Keep the ConfigMap in every namespace as it should be."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from apimachinery import meta
from apimachinery.wellknown import ANNOTATION_DESCRIPTION
from controller_manager.kinds import CONFIG_MAPS, NAMESPACES
from controller_manager.runtime.actions import NOTHING, Create, Plan, Update
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import Controller, Watch
from controller_manager.runtime.resource import Key

CONFIG_MAP: Final = "kube-root-ca.crt"
_DATA: Final = "ca.crt"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def reconcile(bundle: str, caches: Caches, key: Key, _: datetime) -> Plan:
    """`key` names a namespace."""
    namespace = caches.of(NAMESPACES).get("", key.name)
    if namespace is None or meta.is_deleting(namespace):
        return NOTHING
    present = caches.of(CONFIG_MAPS).get(key.name, CONFIG_MAP)
    if present is None:
        return Plan(actions=(Create(resource=CONFIG_MAPS, bodies=(_config_map(key.name, bundle),)),))
    described = meta.annotations(present).get(ANNOTATION_DESCRIPTION) == _DESCRIPTION
    if described and present.get("data") == {_DATA: bundle}:
        return NOTHING
    mended = meta.with_annotations(
        {**present, "data": {_DATA: bundle}}, {ANNOTATION_DESCRIPTION: _DESCRIPTION}
    )
    return Plan(actions=(Update(resource=CONFIG_MAPS, body=mended),))


def _config_map(namespace: str, bundle: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": CONFIG_MAP,
            "namespace": namespace,
            "annotations": {ANNOTATION_DESCRIPTION: _DESCRIPTION},
        },
        "data": {_DATA: bundle},
    }


def _of_namespace(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else (Key("", meta.name(change.new)),)


def _of_config_map(_: Caches, change: Change) -> Iterable[Key]:
    return (Key("", meta.namespace(change.latest)),) if meta.name(change.latest) == CONFIG_MAP else ()


def root_ca(bundle: str) -> Controller:
    """Publishes these certificates, in PEM."""
    return Controller(
        name="root-ca-certificate-publisher-controller",
        queue="root_ca_cert_publisher",
        service_account="root-ca-cert-publisher",
        watches=(
            Watch(resource=NAMESPACES, keys=_of_namespace),
            Watch(resource=CONFIG_MAPS, keys=_of_config_map),
        ),
        reconcile=partial(reconcile, bundle),
        workers=1,
    )
