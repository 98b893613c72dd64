"""What certificates are signed with: flags, and which files they name for each signer."""

from pathlib import Path
from typing import Annotated, Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery.flags import Flag, seconds

_YEAR: Final = 365 * 86400.0


def _certificate(signer: str) -> Flag:
    return Flag(f"CA certificate of {signer}, in PEM", Path, metavar="FILE")


def _key(signer: str) -> Flag:
    return Flag(f"CA key of {signer}, in PEM", Path, metavar="FILE")


_SERVING, _KUBELET = "kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"
_CLIENT, _LEGACY = "kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown"
_EVERY: Final = "all signers (the API server's, if both are started together)"


class Signing(Struct, frozen=True, kw_only=True):
    """Certificates"""

    cluster_signing_cert_file: Annotated[Path | None, _certificate(_EVERY)] = None
    cluster_signing_key_file: Annotated[Path | None, _key(_EVERY)] = None
    cluster_signing_kubelet_serving_cert_file: Annotated[Path | None, _certificate(_SERVING)] = None
    cluster_signing_kubelet_serving_key_file: Annotated[Path | None, _key(_SERVING)] = None
    cluster_signing_kubelet_client_cert_file: Annotated[Path | None, _certificate(_KUBELET)] = None
    cluster_signing_kubelet_client_key_file: Annotated[Path | None, _key(_KUBELET)] = None
    cluster_signing_kube_apiserver_client_cert_file: Annotated[Path | None, _certificate(_CLIENT)] = None
    cluster_signing_kube_apiserver_client_key_file: Annotated[Path | None, _key(_CLIENT)] = None
    cluster_signing_legacy_unknown_cert_file: Annotated[Path | None, _certificate(_LEGACY)] = None
    cluster_signing_legacy_unknown_key_file: Annotated[Path | None, _key(_LEGACY)] = None
    cluster_signing_duration: Annotated[
        float, Flag("maximum lifetime of signed certificates (8760h0m0s)", seconds)
    ] = _YEAR


class AuthorityFiles(NamedTuple):
    certificate: Path
    key: Path


class SignerFiles(NamedTuple):
    """Those of each signer; None where nothing is signed."""

    kubelet_serving: AuthorityFiles | None
    kubelet_client: AuthorityFiles | None
    kube_apiserver_client: AuthorityFiles | None
    legacy_unknown: AuthorityFiles | None


def signer_files(flags: Signing) -> SignerFiles:
    """Return the files of each signer; `ValueError` if the flags contradict each other."""
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


def _files(certificate: Path | None, key: Path | None) -> AuthorityFiles | None:
    return None if certificate is None or key is None else AuthorityFiles(certificate, key)
