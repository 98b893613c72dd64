"""Certificates are created once, used as long as they are valid, and readable by their owner only."""

import fcntl
import logging
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.cert_dir import (
    ADMIN,
    AUTHORITY,
    CLIENT,
    KUBECONFIG_ADMIN,
    SERVER,
    BadFolder,
    prepare_folder,
    server_subject,
)
from mockube.apiserver.pki.issue import Subject

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOST = server_subject(["192.0.2.7"], "10.96.0.0/12")


def make_cert_dir(path, *, now=NOW, subject=HOST):
    with prepare_folder(path, subject, now=now, random=SystemRandom()) as folder:
        return folder


def contents(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_certificate_folder_is_private(tmp_path):
    path = make_cert_dir(tmp_path / "pki").path
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}


def test_server_certificate_has_all_names(tmp_path):
    certificate = x509.load_pem_x509_certificate(make_cert_dir(tmp_path).certificate(SERVER).read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "kubernetes", "kubernetes.default.svc.cluster.local"} <= set(
        names.get_values_for_type(x509.DNSName)
    )
    addresses = set(map(str, names.get_values_for_type(x509.IPAddress)))
    assert addresses == {"127.0.0.1", "::1", "10.96.0.1", "192.0.2.7"}


def test_admin_certificate_is_of_system_masters(tmp_path):
    folder = make_cert_dir(tmp_path)
    certificate = x509.load_pem_x509_certificate(folder.certificate(CLIENT).read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    ssl.create_default_context().load_cert_chain(folder.certificate(CLIENT), folder.key(CLIENT))


def test_kubeconfig_admin_has_rsa_key(tmp_path):
    def key(admin):
        with prepare_folder(tmp_path, HOST, now=NOW, random=SystemRandom(), admin=admin) as folder:
            ssl.create_default_context().load_cert_chain(folder.certificate(CLIENT), folder.key(CLIENT))
            return folder.key(CLIENT).read_text()

    assert key(ADMIN).startswith("-----BEGIN PRIVATE KEY-----\n")
    rsa_key = key(KUBECONFIG_ADMIN)
    assert rsa_key.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert key(ADMIN) == key(KUBECONFIG_ADMIN) == rsa_key


@pytest.mark.parametrize(("named", "other"), [("crt", "key"), ("key", "crt")])
def test_configured_certificate_file_is_not_replaced(tmp_path, named, other):
    file = tmp_path / f"{SERVER}.{named}"
    file.write_text("the user's own")
    with prepare_folder(tmp_path, HOST, now=NOW, random=SystemRandom(), configured_files=[file]):
        assert file.read_text() == "the user's own"
        assert not (tmp_path / f"{SERVER}.{other}").exists()
    with prepare_folder(tmp_path, HOST, now=NOW, random=SystemRandom()):
        assert file.read_text() != "the user's own"


def test_valid_certificates_are_reused(tmp_path):
    make_cert_dir(tmp_path)
    before = contents(tmp_path)
    make_cert_dir(tmp_path, now=NOW + timedelta(days=100))
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("now", "subject", "anew"),
    [
        pytest.param(
            NOW + timedelta(days=340),
            HOST,
            {
                f"{name}.{end}"
                for name in (
                    "apiserver",
                    "admin",
                    "controller-manager",
                    "apiserver-kubelet-client",
                    "front-proxy-client",
                )
                for end in ("crt", "key")
            },
            id="old",
        ),
        pytest.param(
            NOW,
            Subject(name=HOST.name, hosts=(*HOST.hosts, "192.0.2.8")),
            {"apiserver.crt", "apiserver.key"},
            id="another address",
        ),
    ],
)
def test_expiring_certificates_are_renewed_by_same_ca(tmp_path, now, subject, anew):
    make_cert_dir(tmp_path)
    before = contents(tmp_path)
    make_cert_dir(tmp_path, now=now, subject=subject)
    assert {name for name, data in contents(tmp_path).items() if data != before[name]} == anew


def test_concurrent_server_reads_before_replacing(tmp_path):
    with (
        prepare_folder(tmp_path, HOST, now=NOW, random=SystemRandom()),
        (tmp_path / ".lock").open() as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_expired_ca_is_refused(tmp_path):
    make_cert_dir(tmp_path)
    with pytest.raises(BadFolder, match=r"ca\.crt expired at"):
        make_cert_dir(tmp_path, now=NOW + timedelta(days=3651))


def test_ca_without_key_is_refused(tmp_path):
    make_cert_dir(tmp_path).key(AUTHORITY).unlink()
    with pytest.raises(BadFolder, match="cannot be read"):
        make_cert_dir(tmp_path)


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "apiserver.crt", "admin.key", "sa.key"])
def test_world_writable_file_is_refused(tmp_path, name):
    """Otherwise another user could replace the CA and issue a certificate of system:masters."""
    make_cert_dir(tmp_path)
    (tmp_path / name).chmod(0o602)
    before = contents(tmp_path)
    with pytest.raises(BadFolder, match=f"{name} is owned by another user or writable by everyone"):
        make_cert_dir(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_file_of_other_user_is_refused(tmp_path):
    make_cert_dir(tmp_path)
    os.chown(tmp_path / "ca.crt", 12345, -1)
    with pytest.raises(BadFolder, match=r"ca\.crt is owned by another user"):
        make_cert_dir(tmp_path)


def test_world_readable_key_is_warned_of(tmp_path, caplog):
    make_cert_dir(tmp_path)
    (tmp_path / "ca.key").chmod(0o644)
    with caplog.at_level(logging.WARNING):
        make_cert_dir(tmp_path)
    assert caplog.messages == [
        f"{tmp_path / 'ca.key'} can be read by every user of this machine: chmod 600 {tmp_path / 'ca.key'}"
    ]


def test_lock_that_is_a_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / ".lock").symlink_to(target)
    with pytest.raises(BadFolder, match=r"\.lock cannot be opened"):
        make_cert_dir(tmp_path / "pki")
    assert not target.exists()
