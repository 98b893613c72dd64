import base64
from pathlib import Path

import pytest
import yaml

from mockube.client import kubeconfig
from mockube.client.kubeconfig import Access, KubeconfigError


def encoded(data):
    return base64.b64encode(data).decode()


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a kubeconfig, and write the files that it refers to."""
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_bytes(f"the {name}".encode())

    def write(cluster=None, user=None, **others):
        path = tmp_path / "config"
        config = {
            "current-context": "here",
            "contexts": [
                {"name": "there", "context": {"cluster": "no", "user": "no"}},
                {"name": "here", "context": {"cluster": "c", "user": "u"}},
            ],
            "clusters": [{"name": "c", "cluster": {"server": "https://host:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": user or {}}],
        }
        path.write_text(yaml.safe_dump({**config, **others}))
        return path

    return write


@pytest.mark.parametrize(
    ("cluster", "user", "expected"),
    [
        pytest.param({}, {}, {}, id="only a server"),
        pytest.param({"server": "https://h/"}, {}, {"server": "https://h"}, id="a slash at the end"),
        pytest.param(
            {"certificate-authority": "ca", "tls-server-name": "name"},
            {"client-certificate": "certificate", "client-key": "key"},
            {
                "authority": b"the ca",
                "server_name": "name",
                "certificate": b"the certificate",
                "key": b"the key",
            },
            id="files",
        ),
        pytest.param(
            {"certificate-authority-data": encoded(b"x"), "certificate-authority": "ca"},
            {"client-certificate-data": encoded(b"y"), "client-key-data": encoded(b"z")},
            {"authority": b"x", "has_inline_authority": True, "certificate": b"y", "key": b"z"},
            id="data before files",
        ),
        pytest.param({"insecure-skip-tls-verify": True}, {}, {"insecure": True}, id="insecure"),
        pytest.param({}, {"token": "t"}, {"token": "t"}, id="a token"),
    ],
)
def test_kubeconfig_is_read(write, cluster, user, expected):
    assert kubeconfig.read(write(cluster, user)) == Access(**{"server": "https://host:6443", **expected})


def test_token_may_be_in_a_file(write, tmp_path):
    assert kubeconfig.read(write({}, {"tokenFile": "token"})).token_file == tmp_path / "token"
    assert str(kubeconfig.read(write({}, {"tokenFile": "/run/token"})).token_file) == "/run/token"


def test_master_flag_overrides_server(write):
    access = kubeconfig.read(write({"server": ""}, {"token": "t"}), master="http://other:1/")
    assert (access.server, access.token) == ("http://other:1", "t")


def test_context_without_user_is_anonymous(write):
    path = write(contexts=[{"name": "here", "context": {"cluster": "c"}}])
    assert kubeconfig.read(path) == Access(server="https://host:6443")


def test_anonymous_access_has_no_credentials():
    shown = Access(server="s", authority=b"a", certificate=b"c", key=b"k", token="t")
    assert shown.anonymous() == Access(server="s", authority=b"a")


def test_secrets_are_not_in_repr():
    assert "secret" not in repr(Access(server="s", token="secret", key=b"secret"))


@pytest.mark.parametrize(
    ("cluster", "user", "others", "problem"),
    [
        pytest.param({"server": ""}, {}, {}, "has no server", id="no server"),
        pytest.param({}, {}, {"current-context": "x"}, 'context "x" does not exist', id="no context"),
        pytest.param({}, {}, {"current-context": ""}, 'context "" does not exist', id="none chosen"),
        pytest.param({}, {}, {"clusters": None}, 'cluster "c" does not exist', id="no cluster"),
        pytest.param({}, {}, {"users": []}, 'user "u" does not exist', id="no user"),
        pytest.param({}, {"exec": {"command": "x"}}, {}, "exec of a user is not supported", id="exec"),
        pytest.param({"proxy-url": "x"}, {}, {}, "proxy-url of a cluster is not supported", id="proxy"),
        pytest.param({"certificate-authority": "no"}, {}, {}, "No such file", id="no file"),
        pytest.param({"certificate-authority-data": "*"}, {}, {}, "certificate-authority: ", id="no base64"),
        pytest.param(
            {"certificate-authority": "ca", "insecure-skip-tls-verify": True},
            {},
            {},
            "exclude each other",
            id="CA and insecure flag",
        ),
    ],
)
def test_invalid_kubeconfig_is_refused(write, cluster, user, others, problem):
    with pytest.raises(KubeconfigError, match=problem):
        kubeconfig.read(write(cluster, user, **others))


@pytest.mark.parametrize("text", ["", "[]", "a: [", "\t"])
def test_file_that_is_no_kubeconfig_is_refused(tmp_path, text):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match="config: "):
        kubeconfig.read(path)


def test_missing_kubeconfig_is_refused(tmp_path):
    with pytest.raises(KubeconfigError, match="No such file"):
        kubeconfig.read(tmp_path / "absent")


def test_file_without_end_is_no_kubeconfig():
    with pytest.raises(KubeconfigError, match="/dev/zero: has more than 8388608 bytes"):
        kubeconfig.read(Path("/dev/zero"))
