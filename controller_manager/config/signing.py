"""The flags of certificate signing, and the CA files that they assign to each signer."""

from pathlib import Path
from typing import Annotated, Final, NamedTuple

from msgspec import Struct

from mockube.component_base.flags import Flag, seconds

_YEAR: Final = 365 * 86400.0


def _certificate(signer: str) -> Flag:
    return Flag(f"CA certificate of {signer}, in PEM", Path, metavar="FILE")


def _key(signer: str) -> Flag:
    return Flag(f"CA key of {signer}, in PEM", Path, metavar="FILE")


_KUBELET_SERVING, _KUBELET_CLIENT = (
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
)
_KUBE_APISERVER_CLIENT, _LEGACY_UNKNOWN = (
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/legacy-unknown",
)
_ALL_SIGNERS: Final = "all signers (the API server's, if both are started together)"


class CertificateSigningOptions(Struct, frozen=True, kw_only=True):
    """Certificates"""

    cluster_signing_cert_file: Annotated[Path | None, _certificate(_ALL_SIGNERS)] = None
    cluster_signing_key_file: Annotated[Path | None, _key(_ALL_SIGNERS)] = None
    cluster_signing_kubelet_serving_cert_file: Annotated[Path | None, _certificate(_KUBELET_SERVING)] = None
    cluster_signing_kubelet_serving_key_file: Annotated[Path | None, _key(_KUBELET_SERVING)] = None
    cluster_signing_kubelet_client_cert_file: Annotated[Path | None, _certificate(_KUBELET_CLIENT)] = None
    cluster_signing_kubelet_client_key_file: Annotated[Path | None, _key(_KUBELET_CLIENT)] = None
    cluster_signing_kube_apiserver_client_cert_file: Annotated[
        Path | None, _certificate(_KUBE_APISERVER_CLIENT)
    ] = None
    cluster_signing_kube_apiserver_client_key_file: Annotated[Path | None, _key(_KUBE_APISERVER_CLIENT)] = (
        None
    )
    cluster_signing_legacy_unknown_cert_file: Annotated[Path | None, _certificate(_LEGACY_UNKNOWN)] = None
    cluster_signing_legacy_unknown_key_file: Annotated[Path | None, _key(_LEGACY_UNKNOWN)] = None
    cluster_signing_duration: Annotated[
        float, Flag("maximum lifetime of signed certificates (8760h0m0s)", seconds)
    ] = _YEAR


class CAFiles(NamedTuple):
    certificate: Path
    key: Path


class SignerFiles(NamedTuple):
    """The CA files of each signer; None for a signer that is disabled."""

    kubelet_serving: CAFiles | None
    kubelet_client: CAFiles | None
    kube_apiserver_client: CAFiles | None
    legacy_unknown: CAFiles | None


def signer_files(flags: CertificateSigningOptions) -> SignerFiles:
    """Return the CA files of each signer. Raises `ValueError` if the flags contradict each other."""
    general = (flags.cluster_signing_cert_file, flags.cluster_signing_key_file)
    specific = {
        "kubelet-serving": (
            flags.cluster_signing_kubelet_serving_cert_file,
            flags.cluster_signing_kubelet_serving_key_file,
        ),
        "kubelet-client": (
            flags.cluster_signing_kubelet_client_cert_file,
            flags.cluster_signing_kubelet_client_key_file,
        ),
        "kube-apiserver-client": (
            flags.cluster_signing_kube_apiserver_client_cert_file,
            flags.cluster_signing_kube_apiserver_client_key_file,
        ),
        "legacy-unknown": (
            flags.cluster_signing_legacy_unknown_cert_file,
            flags.cluster_signing_legacy_unknown_key_file,
        ),
    }
    for name, (certificate, key) in specific.items():
        if (certificate is None) != (key is None):
            specified, missing = ("cert", "key") if key is None else ("key", "cert")
            raise ValueError(f'"cluster-signing-{name}": cannot specify {specified} without {missing}')
    if not any(certificate for certificate, _ in specific.values()):
        return SignerFiles(*(_files(*general) for _ in specific))
    if any(general):
        raise ValueError(
            "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time"
        )
    return SignerFiles(*(_files(*pair) for pair in specific.values()))


def _files(certificate: Path | None, key: Path | None) -> CAFiles | None:
    return None if certificate is None or key is None else CAFiles(certificate, key)
