"""The kubeconfig of an operator under test, and the account that has all rights."""

from pathlib import Path

from mockube.client import kubeconfig
from mockube.operators.account import account_with_all_rights, write_kubeconfig


def test_kubeconfig_has_the_server_and_the_token(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    access = kubeconfig.Access(server="https://127.0.0.1:1", authority=b"certificates")
    write_kubeconfig(path, access, "secret", "system")
    read = kubeconfig.read(path)
    assert (read.server, read.authority, read.token) == ("https://127.0.0.1:1", b"certificates", "secret")
    assert path.stat().st_mode & 0o777 == 0o600


def test_account_is_bound_to_all_rights() -> None:
    account, binding = account_with_all_rights("system", "manager")
    assert account["metadata"] == {"name": "manager", "namespace": "system"}
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "manager", "namespace": "system"}]
