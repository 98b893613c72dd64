"""The PodCertificateRequests of simulated kubelets, and the keys with the certificates that signers have issued for them.

Keys are in memory only: after a restart of the manager, certificates are requested anew, as after a restart of a kubelet.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.informer import Informer, Informers
from mockube.client.cache.store import Change, Lister
from mockube.client.component import ComponentContext
from mockube.client.kinds import NODES, POD_CERTIFICATE_REQUESTS, SERVICE_ACCOUNTS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.container_runtime.config.projections import NOT_ISSUED, PodCredential, clean_chain
from mockube.container_runtime.records import Records

from .pod_records import pod_records
from .shared_work import SharedWork

_PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_NEW_KEYS: Final[Mapping[str, Callable[[], _PrivateKey]]] = {
    "RSA3072": lambda: rsa.generate_private_key(65537, 3072),
    "RSA4096": lambda: rsa.generate_private_key(65537, 4096),
    "ECDSAP256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ECDSAP384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ECDSAP521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ED25519": ed25519.Ed25519PrivateKey.generate,
}
_ABANDONED: Final = timedelta(minutes=10)
"""The time after which a request that is not in the cache counts as deleted."""
_DECIDED: Final = {"Denied": "denied", "Failed": "failed"}


class _Issuance:
    """The state of one projection: the credential in use, and the request that is pending."""

    def __init__(self) -> None:
        self.credential: PodCredential | None = None
        self.refresh_at: datetime | None = None
        self.problem = ""
        """Why no certificate will ever be issued."""
        self.request: Key | None = None
        self.key = b""
        self.abandoned_at: datetime | None = None

    @property
    def current_credential(self) -> PodCredential:
        if self.problem:
            return PodCredential(problem=self.problem)
        return self.credential or PodCredential(problem=NOT_ISSUED)

    def needs_request(self, now: datetime) -> bool:
        if self.problem or self.request:
            return False
        return self.credential is None or (self.refresh_at is not None and now >= self.refresh_at)

    def apply(self, request: ReadOnlyTree | None, now: datetime) -> None:
        """Update the state from the pending request, which is None if the cache lacks it."""
        if request is None:
            if self.abandoned_at is not None and now >= self.abandoned_at:
                self.request = None
            return
        for condition in conditions.of(request):
            if verb := _DECIDED.get(condition["type"]):
                reason, message = condition.get("reason", ""), condition.get("message", "")
                about = f'reason="{reason}" message="{message}"'
                self.problem = f"PodCertificateRequest was permanently {verb}: {about}"
                self.request = None
            elif condition["type"] == "Issued":
                status = request["status"]
                self.credential = PodCredential(self.key, clean_chain(status["certificateChain"]))
                self.refresh_at = parse_time(status["beginRefreshAt"])
                self.request = None


class _Issuances(dict[tuple[str, int], _Issuance]):
    """Those of a pod, by the volume's name and the index of the source."""


class PodCertificates:
    def __init__(
        self,
        records: Records,
        client: Client,
        informers: Informers,
        nodes: Lister[ReadOnlyTree],
        clock: Clock,
        new_keys: Mapping[str, Callable[[], _PrivateKey]] = _NEW_KEYS,
    ) -> None:
        """`new_keys` generates keys by the type that a volume names."""
        self._records = records
        self._new_keys = new_keys
        self._client, self._informers, self._nodes, self._clock = client, informers, nodes, clock
        self._requests: Informer[ReadOnlyTree] | None = None
        self._work = SharedWork[None]()
        self._handlers: list[Callable[[Key], None]] = []

    def add_handler(self, handler: Callable[[Key], None]) -> None:
        """Call the handler with the key of a pod when a signer may have issued its certificate."""
        self._handlers.append(handler)

    def find(self, uid: str, volume: str, index: int) -> PodCredential | None:
        """Return the credential of a projection, or why there is none; None if a certificate must be requested."""
        issuance = (self._records.find(uid, _Issuances) or _Issuances()).get((volume, index))
        if issuance is None or self._requests is None:
            return None
        self._apply(issuance)
        return None if issuance.needs_request(self._clock.now()) else issuance.current_credential

    async def ensure(self, pod: ReadOnlyTree, volume: str, index: int) -> PodCredential:
        """Request a certificate, the first or the next one, if it is time; return the credential in use."""
        uid = meta.uid(pod)
        issuance = self._records.ensure(uid, _Issuances).setdefault((volume, index), _Issuance())
        requests = self._informer()
        await requests.wait_synced()
        self._apply(issuance)
        if issuance.needs_request(self._clock.now()):
            await self._work.run((uid, volume, index), partial(self._request, issuance, pod, volume, index))
        return issuance.current_credential

    def _informer(self) -> Informer[ReadOnlyTree]:
        if self._requests is None:
            self._requests = self._informers.of(POD_CERTIFICATE_REQUESTS)
            self._requests.add_handler(self._on_request)
        return self._requests

    def _on_request(self, change: Change) -> None:
        request = change.last_known
        for handler in self._handlers:
            handler(Key(meta.namespace(request), request["spec"]["podName"]))

    def _apply(self, issuance: _Issuance) -> None:
        if issuance.request and self._requests is not None:
            request = self._requests.lister.get(*issuance.request)
            issuance.apply(request, self._clock.now())

    async def _request(self, issuance: _Issuance, pod: ReadOnlyTree, volume: str, index: int) -> None:
        if not issuance.needs_request(self._clock.now()):
            return
        source = _source(pod, volume, index)
        account, node = pod["spec"].get("serviceAccountName") or "default", pod["spec"].get("nodeName") or ""
        new_key = self._new_keys[source["keyType"]]
        private_key, stub = await asyncio.get_running_loop().run_in_executor(None, _make_stub, new_key)
        try:
            service_account = await self._client.get(SERVICE_ACCOUNTS, Key(meta.namespace(pod), account))
            spec: dict[str, Any] = {
                "signerName": source["signerName"],
                "podName": meta.name(pod),
                "podUID": meta.uid(pod),
                "serviceAccountName": account,
                "serviceAccountUID": meta.uid(service_account),
                "nodeName": node,
                "nodeUID": meta.uid(self._nodes.get("", node) or {"metadata": {}}),
                "maxExpirationSeconds": source.get("maxExpirationSeconds"),
                "stubPKCS10Request": stub,
                "unverifiedUserAnnotations": source.get("userAnnotations"),
            }
            created = await self._client.create(POD_CERTIFICATE_REQUESTS, _body(pod, spec))
        except ApiError:
            return  # it is requested again when the pod's volumes are mounted again
        issuance.request, issuance.key = Key.of(created), private_key
        issuance.abandoned_at = self._clock.now() + _ABANDONED


def _source(pod: ReadOnlyTree, volume: str, index: int) -> ReadOnlyTree:
    spec = next(each for each in pod["spec"]["volumes"] if each["name"] == volume)
    source: ReadOnlyTree = spec["projected"]["sources"][index]["podCertificate"]
    return source


def _make_stub(new_key: Callable[[], _PrivateKey]) -> tuple[bytes, str]:
    """Return a new key in PEM, and an empty certificate request that proves its possession, in base64."""
    key = new_key()
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256()
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, digest)
    private_key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private_key, base64.b64encode(request.public_bytes(Encoding.DER)).decode()


def _body(pod: ReadOnlyTree, spec: Mapping[str, Any]) -> ReadOnlyTree:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name(pod), "uid": meta.uid(pod)}
    return {
        "apiVersion": POD_CERTIFICATE_REQUESTS.api_version,
        "kind": POD_CERTIFICATE_REQUESTS.kind,
        "metadata": {
            "namespace": meta.namespace(pod),
            "generateName": "req-",
            "ownerReferences": [owner],
        },
        "spec": {name: value for name, value in spec.items() if value is not None},
    }


def pod_certificates(context: ComponentContext) -> PodCertificates:
    """Return the requests of all simulated kubelets of this manager."""
    present = context.shared.get(PodCertificates)
    if present is None:
        nodes = context.informers.of(NODES).lister
        present = PodCertificates(
            pod_records(context), context.client, context.informers, nodes, context.clock
        )
        context.shared[PodCertificates] = present
    assert isinstance(present, PodCertificates)
    return present
