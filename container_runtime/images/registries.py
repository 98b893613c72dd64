"""Registries: which of them have the same images as another, and how they refuse a pull."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from .references import DOCKER_HUB, Reference

MIRRORS: Final[Mapping[str, str]] = {
    "docker.m.daocloud.io/": "docker.io/",
    "ecr-public.aws.com/docker/": "docker.io/",
    "gcr.io/google-containers/": "registry.k8s.io/",
    "gcr.io/google_containers/": "registry.k8s.io/",
    "gcr.io/google_samples/": "gcr.io/google-samples/",
    "gcr.io/kubernetes-e2e-test-images/": "registry.k8s.io/e2e-test-images/",
    "k8s.gcr.io/": "registry.k8s.io/",
    "k8s.m.daocloud.io/": "registry.k8s.io/",
    "mirror.gcr.io/": "docker.io/",
    "public.ecr.aws/bitnami/": "docker.io/bitnami/",
    "public.ecr.aws/docker/": "docker.io/",
    "registry-1.docker.io/": "docker.io/",
    "registry.aliyuncs.com/google_containers/": "registry.k8s.io/",
    "registry.cn-hangzhou.aliyuncs.com/google_containers/": "registry.k8s.io/",
    "registry.hub.docker.com/": "docker.io/",
    "us.gcr.io/k8s-artifacts-prod/": "registry.k8s.io/",
}
"""The beginnings of repositories by those of the repositories whose images they have, too."""
_RESERVED: Final = ("example", "invalid", "test")
"""The top-level domains in which no host exists (RFC 2606)."""
_NAME_SERVER: Final = "172.18.0.1:53"


class PullError(NamedTuple):
    """Why a pull fails: the code of the run-time's gRPC error, and its words after the reference."""

    code: str
    reason: str


def origin(repository: str) -> str:
    """Return the repository that another, such as public.ecr.aws/docker/library/nginx, mirrors; others as they are."""
    for beginning, replacement in MIRRORS.items():
        if repository.startswith(beginning):
            path = repository.removeprefix(beginning)
            is_official = replacement == f"{DOCKER_HUB}/" and "/" not in path
            return f"{replacement}library/{path}" if is_official else replacement + path
    return repository


def repository_of(name: str) -> str:
    """Return the repository that a name in the table of images means, such as docker.io/library/nginx for nginx."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first):
        return name
    return f"{DOCKER_HUB}/{name if slash else f'library/{name}'}"


def is_reserved(reference: Reference) -> bool:
    """Return whether the registry is in a domain in which no host exists."""
    return _host(reference).rpartition(".")[2] in _RESERVED and "." in reference.host


def is_named_private(reference: Reference) -> bool:
    """Return whether the host of a registry says that it needs credentials."""
    return any(
        name in _host(reference)
        for name in ("private-registry", "privateregistry", "private.registry", "registry-private")
    )


def _host(reference: Reference) -> str:
    return reference.host.rpartition(":")[0] if ":" in reference.host else reference.host


def no_such_host(reference: Reference) -> PullError:
    manifest = f"https://{reference.host}/v2/{reference.path}/manifests/{reference.digest or reference.tag}"
    lookup = f"dial tcp: lookup {_host(reference)} on {_NAME_SERVER}: no such host"
    return PullError("Unknown", f'failed to do request: Head "{manifest}": {lookup}')


def no_such_tag(reference: Reference) -> PullError:
    return PullError("NotFound", f"{reference.name}: not found")


def access_denied() -> PullError:
    """Return how Docker Hub refuses the pull of a repository that does not exist, or that others may not read."""
    return PullError(
        "Unknown",
        "pull access denied, repository does not exist or may require authorization: "
        "server message: insufficient_scope: authorization failed",
    )


def no_such_repository(reference: Reference) -> PullError:
    is_on_docker_hub = origin(reference.repository).startswith(f"{DOCKER_HUB}/")
    return access_denied() if is_on_docker_hub else no_such_tag(reference)


def unauthorized(reference: Reference) -> PullError:
    """Return how the registry of a private image refuses a pull without credentials."""
    if origin(reference.repository).startswith(f"{DOCKER_HUB}/"):
        return access_denied()
    host = reference.host
    token = next((url for end, url in _TOKENS.items() if host == end or host.endswith(f".{end}")), None)
    if token is None:
        manifest = f"https://{host}/v2/{reference.path}/manifests/{reference.digest or reference.tag}"
        return PullError("Unknown", f"unexpected status from HEAD request to {manifest}: 401 Unauthorized")
    url = token(host, f"repository%3A{quote(reference.path, safe='')}%3Apull")
    return PullError(
        "Unknown",
        "failed to authorize: failed to fetch anonymous token: "
        f"unexpected status from GET request to {url}: {'403 Forbidden' if host in _FORBIDDING else '401 Unauthorized'}",
    )


_TOKENS: Final[Mapping[str, Callable[[str, str], str]]] = {
    "azurecr.io": lambda host, scope: f"https://{host}/oauth2/token?scope={scope}&service={host}",
    "gcr.io": lambda host, scope: f"https://{host}/v2/token?scope={scope}&service={host}",
    "ghcr.io": lambda host, scope: f"https://{host}/token?scope={scope}&service={host}",
    "pkg.dev": lambda host, scope: f"https://{host}/v2/token?scope={scope}&service={host}",
    "quay.io": lambda host, scope: f"https://{host}/v2/auth?scope={scope}&service={host}",
    "registry.gitlab.com": lambda _, scope: (
        f"https://gitlab.com/jwt/auth?scope={scope}&service=container_registry"
    ),
}
"""The addresses at which registries give tokens, by the ends of their hosts."""
_FORBIDDING: Final = ("registry.gitlab.com",)
"""The registries that answer 403, and not 401."""
