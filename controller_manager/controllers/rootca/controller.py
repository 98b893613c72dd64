"""The root CA publisher: it writes the root CA into a ConfigMap in every namespace.

By default the root CA is the one by which this process trusts the server.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import ANNOTATION_DESCRIPTION
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import CONFIG_MAPS, NAMESPACES
from mockube.client.kubeconfig import access_of
from mockube.client.resources import Key
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.control.actions import EMPTY_PLAN, Create, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch, key_of_existing_object
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.runner import ControllerRunner

CONFIG_MAP: Final = "kube-root-ca.crt"
_DATA: Final = "ca.crt"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def reconcile(bundle: str, caches: Caches, key: Key, _: datetime) -> Plan:
    """Create or update the ConfigMap of a namespace; `key` is the namespace's."""
    namespace = caches.of(NAMESPACES).get("", key.name)
    if namespace is None or meta.is_deleting(namespace):
        return EMPTY_PLAN
    present = caches.of(CONFIG_MAPS).get(key.name, CONFIG_MAP)
    if present is None:
        return Plan(actions=(Create(resource=CONFIG_MAPS, bodies=(_config_map(key.name, bundle),)),))
    has_description = meta.annotations(present).get(ANNOTATION_DESCRIPTION) == _DESCRIPTION
    if has_description and present.get("data") == {_DATA: bundle}:
        return EMPTY_PLAN
    updated = meta.with_annotations(
        {**present, "data": {_DATA: bundle}}, {ANNOTATION_DESCRIPTION: _DESCRIPTION}
    )
    return Plan(actions=(Update(resource=CONFIG_MAPS, body=updated),))


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


def _namespace_of_config_map(_: Caches, change: Change) -> Iterable[Key]:
    return (Key("", meta.namespace(change.last_known)),) if meta.name(change.last_known) == CONFIG_MAP else ()


def root_ca(bundle: str) -> Controller:
    """Return the controller that publishes these certificates in PEM."""
    return Controller(
        name="root-ca-certificate-publisher-controller",
        queue="root_ca_cert_publisher",
        service_account="root-ca-cert-publisher",
        watches=(
            Watch(resource=NAMESPACES, keys=key_of_existing_object),
            Watch(resource=CONFIG_MAPS, keys=_namespace_of_config_map),
        ),
        reconcile=partial(reconcile, bundle),
        workers=1,
    )


def published_bundle(options: Config) -> str:
    file = options.controllers.root_ca_file
    return file.read_text() if file is not None else access_of(options.server).authority.decode()


def _build(context: Context) -> ControllerRunner:
    return ControllerRunner(root_ca(published_bundle(context.options)), context)


ROOT_CA: Runnable = Runnable(
    name="root-ca-certificate-publisher-controller", service_account="root-ca-cert-publisher", build=_build
)
