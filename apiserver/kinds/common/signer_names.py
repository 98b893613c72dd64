"""Names of signers, the names of the ClusterTrustBundles that belong to one, and how long its certificates of pods are valid."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path

_MAX_DOMAIN_LENGTH: Final = names.SUBDOMAIN_MAX_LENGTH
_MAX_LENGTH: Final = 2 * _MAX_DOMAIN_LENGTH + names.LABEL_MAX_LENGTH + 2
_KUBERNETES: Final = "kubernetes.io"
MIN_EXPIRATION_SECONDS: Final = 3600
_MAX_EXPIRATION_SECONDS: Final = 91 * 24 * 3600
_MAX_KUBERNETES_EXPIRATION_SECONDS: Final = 24 * 3600


def max_expiration_seconds(signer: str) -> int:
    """Return the limit for a signer; that for signers of the Kubernetes project is lower."""
    domain = signer.partition("/")[0]
    is_of_kubernetes = domain == _KUBERNETES or domain.endswith(f".{_KUBERNETES}")
    return _MAX_KUBERNETES_EXPIRATION_SECONDS if is_of_kubernetes else _MAX_EXPIRATION_SECONDS


def check_signer_name(signer: str, path: Path) -> Iterator[FieldError]:
    if not signer:
        yield errors.required(path)
        return
    domain, _, name = signer.partition("/")
    if signer.count("/") != 1:
        problem = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield errors.invalid(path, signer, problem)
        return
    if len(domain.encode()) > _MAX_DOMAIN_LENGTH:
        yield errors.too_long(path, _MAX_DOMAIN_LENGTH)
    for problem in _first_problems(domain, is_domain=True):
        yield errors.invalid(path, domain, problem)
    if "." not in domain:
        yield errors.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    for problem in _first_problems(name, is_domain=False):
        yield errors.invalid(path, name, problem)
    if len(signer.encode()) > _MAX_LENGTH:
        yield errors.too_long(path, _MAX_LENGTH)


def _first_problems(part: str, *, is_domain: bool) -> list[str]:
    """Return the problems of the first invalid label: upstream stops there."""
    check = names.check_dns1123_label if is_domain else names.check_dns1123_subdomain
    for label in part.split("."):
        if problems := check(label):
            return [f'validating label "{label}": {problem}' for problem in problems]
    return []


def check_bundle_name(name: str, signer: str) -> list[str]:
    """Return the problems of a ClusterTrustBundle's name, which begins with that of its signer."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return names.check_dns1123_subdomain(name)
    prefix = f"{signer.replace('/', ':')}:"
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return names.check_dns1123_subdomain(name.removeprefix(prefix))


def signer_of_bundle(name: str) -> str:
    """Return the signer with which a ClusterTrustBundle's name begins; "" if it has none."""
    return name.rpartition(":")[0].replace(":", "/")
