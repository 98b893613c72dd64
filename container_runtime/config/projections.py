"""The certificates in projected volumes: trust anchors of ClusterTrustBundles, and keys with certificates of a pod. Pure."""

import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from mockube.apimachinery import labels, meta, pem
from mockube.apimachinery.tree import ReadOnlyTree

NOT_ISSUED: Final = "credential bundle is not issued yet"


class PodCredential(NamedTuple):
    """A key and its certificates in PEM, or why there are none."""

    key: bytes = b""
    chain: bytes = b""
    problem: str = ""


Credentials = Mapping[tuple[str, int], PodCredential]
"""The credentials of a pod by the name of a volume and the index of a source."""


def trust_anchors(source: ReadOnlyTree, bundles: Iterable[ReadOnlyTree]) -> tuple[bytes, str]:
    """Return the anchors of a projection without duplicates, and why there are none although there must be."""
    name = source.get("name")
    if name is not None:
        selected = [bundle for bundle in bundles if meta.name(bundle) == name]
        missing = (
            f'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "{name}" not found'
        )
    else:
        selected = [*_bundles_of_signer(source, bundles)]
        missing = "combination of signerName and labelSelector matched zero ClusterTrustBundles"
    if not selected:
        return b"", "" if source.get("optional") else missing
    anchors = {
        block.data for bundle in selected for block in pem.blocks(bundle["spec"]["trustBundle"].encode())
    }
    return b"".join(_pem(anchor) for anchor in sorted(anchors)), ""


def _bundles_of_signer(source: ReadOnlyTree, bundles: Iterable[ReadOnlyTree]) -> Iterator[ReadOnlyTree]:
    selector = labels.from_label_selector(source.get("labelSelector"))
    for bundle in bundles:
        if bundle["spec"].get("signerName") == source.get("signerName") and selector.matches(
            meta.labels(bundle)
        ):
            yield bundle


def clean_chain(chain: str) -> bytes:
    """Return the certificates of a chain without anything between them."""
    return b"".join(_pem(block.data) for block in pem.blocks(chain.encode()))


def _pem(certificate: bytes) -> bytes:
    return ssl.DER_cert_to_PEM_cert(certificate).encode()


def certificate_files(source: ReadOnlyTree, credential: PodCredential) -> dict[str, bytes]:
    """Return the content of the files of a podCertificate projection by their paths."""
    contents = {
        "credentialBundlePath": credential.key + credential.chain,
        "keyPath": credential.key,
        "certificateChainPath": credential.chain,
    }
    return {source[field]: content for field, content in contents.items() if source.get(field)}


def has_bundles(volumes: Iterable[ReadOnlyTree]) -> bool:
    return any("clusterTrustBundle" in source for volume in volumes for _, source in _sources(volume))


def certificate_sources(volume: ReadOnlyTree) -> Iterator[tuple[int, ReadOnlyTree]]:
    """Yield each podCertificate projection of a volume with the index of its source."""
    for index, source in _sources(volume):
        if source.get("podCertificate"):
            yield index, source["podCertificate"]


def _sources(volume: ReadOnlyTree) -> Iterable[tuple[int, ReadOnlyTree]]:
    return enumerate((volume.get("projected") or {}).get("sources") or ())
