"""The folder of keys and certificates: created if they are missing, reused if they are valid.

The folder is created as 0700 and every file as 0600. A present file is used only if this user or root owns it and its
mode does not let everyone write to it: whoever writes the authority can issue certificates of administrators. Servers
that share a folder share an authority: the first one creates it, under a lock.
"""

import fcntl
import logging
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from ipaddress import ip_network
from pathlib import Path

from msgspec import Struct, structs

from mockube.apimachinery.randomness import Random

from .issue import LEAF_YEARS, CertificateIssuer, Pair, Subject, make_authority, make_key, not_after
from .private import write_private

LOG = logging.getLogger(__name__)

ADMIN = Subject(name="kubernetes-admin", groups=("system:masters",))
KUBECONFIG_ADMIN = structs.replace(ADMIN, has_rsa_key=True)
"""The same with an RSA key, which clients in any language can read from a kubeconfig."""
MANAGER_GROUP = "mockube:manager"
"""The group of mockube's manager, with more rights than upstream's: it also runs the scheduler and the kubelets."""
MANAGER = Subject(name="system:kube-controller-manager", groups=(MANAGER_GROUP,))
KUBELET_USER = Subject(name="kube-apiserver-kubelet-client", groups=("system:masters",))
"""The server's identity towards kubelets."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
SERVICE_HOSTS = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class BadFolder(Exception):
    """The files in the folder are unusable, and must not be replaced."""


class Folder(Struct, frozen=True, kw_only=True):
    """A folder of keys and certificates, by the names of their files."""

    path: Path

    def certificate(self, name: str) -> Path:
        return self.path / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.path / f"{name}.key"

    def pair(self, name: str) -> Pair:
        return Pair(certificate=self.certificate(name).read_bytes(), key=self.key(name).read_bytes())


AUTHORITY, SERVER, CLIENT, SERVICE_ACCOUNTS = "ca", "apiserver", "admin", "sa"
CONTROLLERS = "controller-manager"
KUBELET_CLIENT = "apiserver-kubelet-client"
PROXY_AUTHORITY, PROXY_CLIENT = "front-proxy-ca", "front-proxy-client"
"""Names of files: NAME.crt and NAME.key; service accounts have a key only."""


def server_subject(addresses: Sequence[str], service_range: str) -> Subject:
    """Return the subject of the serving certificate, with the hosts by which clients reach the server."""
    first = str(ip_network(service_range)[1])
    hosts = (*LOCAL_HOSTS, *SERVICE_HOSTS, first, *addresses)
    return Subject(name="kube-apiserver", hosts=tuple(dict.fromkeys(hosts)))


PROXY = Subject(name=PROXY_CLIENT)
"""The server's identity towards aggregated API servers."""
_CERTIFICATES = (AUTHORITY, SERVER, CLIENT, CONTROLLERS, KUBELET_CLIENT, PROXY_AUTHORITY, PROXY_CLIENT)
_KEYS = (*_CERTIFICATES, SERVICE_ACCOUNTS)


@contextmanager
def prepare_folder(  # noqa: PLR0913 - each decides about the files
    path: Path,
    server: Subject,
    *,
    now: datetime,
    random: Random,
    configured_files: Collection[Path] = (),
    admin: Subject = ADMIN,
    years: int = LEAF_YEARS,
) -> Iterator[Folder]:
    """Create missing files, replace unusable certificates, and hold the folder's lock while the caller reads the files.

    `configured_files` are the files that flags name; they are never replaced. New certificates are valid for some `years`.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Folder(path=path)
    with _hold_lock(path):
        _check_files(folder)
        authority = _authority(folder, AUTHORITY, "kubernetes", now, random)
        issuer = CertificateIssuer(authority, now=now, random=random, years=years)
        proxies = _authority(folder, PROXY_AUTHORITY, PROXY_AUTHORITY, now, random)
        proxy_issuer = CertificateIssuer(proxies, now=now, random=random, years=years)
        for name, subject, signer in (
            (SERVER, server, issuer),
            (CLIENT, admin, issuer),
            (CONTROLLERS, MANAGER, issuer),
            (KUBELET_CLIENT, KUBELET_USER, issuer),
            (PROXY_CLIENT, PROXY, proxy_issuer),
        ):
            pair = {folder.certificate(name).absolute(), folder.key(name).absolute()}
            if pair.isdisjoint(configured_files) and not _is_usable(folder, name, subject, signer):
                _write_pair(folder, name, signer.issue(subject))
        if not folder.key(SERVICE_ACCOUNTS).exists():
            write_private(folder.key(SERVICE_ACCOUNTS), make_key(random))
        yield folder


def _check_files(folder: Folder) -> None:
    """Raise BadFolder if a file belongs to a user other than this one and root, or if everyone may write to it."""
    for path in (*map(folder.certificate, _CERTIFICATES), *map(folder.key, _KEYS)):
        if not path.exists():
            continue
        file_status = path.stat()
        if file_status.st_uid not in (os.geteuid(), 0) or file_status.st_mode & stat.S_IWOTH:
            raise BadFolder(
                f"{path} is owned by another user or writable by everyone: remove it, or fix its owner and mode"
            )
        if path.suffix == ".key" and file_status.st_mode & stat.S_IROTH:
            LOG.warning("%s can be read by every user of this machine: chmod 600 %s", path, path)


def _authority(folder: Folder, file: str, name: str, now: datetime, random: Random) -> Pair:
    certificate, key = folder.certificate(file), folder.key(file)
    if not certificate.exists() and not key.exists():
        _write_pair(folder, file, make_authority(name, now=now, random=random))
    try:
        pair = folder.pair(file)
        expiry = not_after(pair.certificate)
    except (OSError, ValueError) as error:
        raise BadFolder(f"{certificate} and its key cannot be read: {error}") from error
    if expiry <= now:
        raise BadFolder(f"{certificate} expired at {expiry}: remove the folder to regenerate everything")
    return pair


def _is_usable(folder: Folder, name: str, subject: Subject, issuer: CertificateIssuer) -> bool:
    if not (folder.certificate(name).exists() and folder.key(name).exists()):
        return False
    return issuer.is_usable(folder.certificate(name).read_bytes(), subject)


def _write_pair(folder: Folder, name: str, pair: Pair) -> None:
    write_private(folder.key(name), pair.key)
    write_private(folder.certificate(name), pair.certificate)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    try:
        descriptor = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadFolder(f"{path / '.lock'} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
