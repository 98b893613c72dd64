"""The publisher of the root CA as ClusterTrustBundle of the signer `kubernetes.io/kube-apiserver-serving`."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.component import IdleRunner, Runner
from mockube.client.kinds import CLUSTER_TRUST_BUNDLES
from mockube.client.kubeconfig import access_of
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Create, Delete, ObjectRef, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.control.runnable import Context, Runnable, WaitForKinds
from mockube.controller_manager.control.runner import ControllerRunner

from .controller import published_bundle

NAME: Final = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
ACCOUNT: Final = "kube-apiserver-serving-clustertrustbundle-publisher"
SIGNER: Final = "kubernetes.io/kube-apiserver-serving"
_KEY: Final = Key("", "")
"""The only key: all bundles of the signer are reconciled together."""


def bundle_name(bundle: str) -> str:
    """Return the name of a bundle, which differs for each content."""
    digest = hashlib.sha256(bundle.encode()).digest()[:12].hex()
    return f"{SIGNER.replace('/', ':')}:{digest}"


def reconcile(bundle: str, caches: Caches, _key: Key, _now: datetime) -> Plan:
    """Write the bundle, and delete the other bundles of the signer."""
    name = bundle_name(bundle)
    present = caches.of(CLUSTER_TRUST_BUNDLES).get("", name)
    others = tuple(
        ObjectRef.of(other)
        for other in caches.of(CLUSTER_TRUST_BUNDLES).all()
        if _signer(other) == SIGNER and meta.name(other) != name
    )
    deletions = (Delete(resource=CLUSTER_TRUST_BUNDLES, objects=others),) if others else ()
    spec = {"signerName": SIGNER, "trustBundle": bundle}
    if present is None:
        body = {
            "apiVersion": CLUSTER_TRUST_BUNDLES.api_version,
            "kind": CLUSTER_TRUST_BUNDLES.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        return Plan(actions=(Create(resource=CLUSTER_TRUST_BUNDLES, bodies=(body,)), *deletions))
    if present["spec"].get("trustBundle") != bundle:
        update = Update(
            resource=CLUSTER_TRUST_BUNDLES,
            body={**present, "spec": {**present["spec"], "trustBundle": bundle}},
        )
        return Plan(actions=(update, *deletions))
    return Plan(actions=deletions) if deletions else EMPTY_PLAN


def _signer(bundle: ReadOnlyTree) -> str:
    return str((bundle.get("spec") or {}).get("signerName") or "")


def _keys_of_bundle(_: Caches, change: Change) -> Iterable[Key]:
    return (_KEY,) if _signer(change.last_known) == SIGNER else ()


def trust_bundle(bundle: str) -> Controller:
    """Return the controller that publishes these certificates in PEM."""
    return Controller(
        name=NAME,
        queue="ca_cert_publisher_cluster_trust_bundles",
        service_account=ACCOUNT,
        watches=(Watch(resource=CLUSTER_TRUST_BUNDLES, keys=_keys_of_bundle),),
        reconcile=partial(reconcile, bundle),
        workers=1,
    )


def _build(context: Context) -> Runner:
    options = context.options
    # Upstream does not read a file that the kubeconfig names; its certificate may be that of the server alone.
    is_known = options.controllers.root_ca_file is not None or access_of(options.server).has_inline_authority
    bundle = published_bundle(options) if is_known else ""
    if not bundle:
        return IdleRunner(context.clock)

    def build() -> Runner:
        runner = ControllerRunner(trust_bundle(bundle), context)
        runner.loop.add(_KEY)
        return runner

    return WaitForKinds((CLUSTER_TRUST_BUNDLES,), build, context)


TRUST_BUNDLE: Final = Runnable(name=NAME, service_account=ACCOUNT, build=_build)
