"""`mockube snapshot` saves a server, a data folder or an etcd to a file, and restores the file."""

import asyncio
import gzip
import os
import re
import signal
import subprocess
import sys

import pytest

from mockube.cli.main import main
from tests.support.processes.process import ROOT, ApiServerProcess, client

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def snapshot(capsys):
    """Run the command; return its exit code, stdout and stderr."""

    def run(*arguments):
        code = main(["snapshot", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


async def send_request(server, method, path, body=None):
    async with client(server) as admin:
        return (await admin.send(method, path, body)).body


def entries(path):
    """Return the lines of the objects, without header, trailer and the leases of the processes."""
    lines = gzip.decompress(path.read_bytes()).splitlines()[1:-1]
    of_processes = re.compile(rb'"/registry/(leases/kube-system|masterleases)/')
    return [line for line in lines if not of_processes.search(line)]


@pytest.mark.slow
def test_snapshot_is_saved_and_restored_to_file_folder_etcd_and_server(tmp_path, snapshot, etcd_url):
    first, second, third = (tmp_path / f"{name}.gz" for name in "abc")
    etcd, folder = ("--etcd-servers", etcd_url), ("--data-dir", tmp_path / "data")
    with ApiServerProcess(tmp_path) as server:
        asyncio.run(send_request(server, "POST", MAPS, {"metadata": {"name": "kept"}, "data": {"k": "v"}}))
        code, out, _ = snapshot("save", first, "--kubeconfig", server.kubeconfig)
        assert (code, bool(re.fullmatch(rf"{first}: \d+ objects at revision \d+\n", out))) == (0, True)
        refused = snapshot("restore", first, "--kubeconfig", server.kubeconfig)
        assert refused[0] == 1
        assert "which would be lost: use --replace to allow it" in refused[2]
        assert snapshot("restore", first, "--kubeconfig", server.kubeconfig, "--replace")[0] == 0
    assert snapshot("restore", first, *folder)[0] == 0
    assert snapshot("save", second, *folder)[0] == 0
    assert snapshot("restore", second, *etcd)[0] == 0
    assert snapshot("save", third, *etcd)[0] == 0
    assert entries(first) == entries(second) == entries(third)
    with ApiServerProcess(tmp_path, "--snapshot", third) as server:
        response = asyncio.run(send_request(server, "GET", f"{MAPS}/kept"))
    assert response["data"] == {"k": "v"}
    assert int(response["metadata"]["resourceVersion"]) > 1_000_000_000


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["save", "{}/a.gz", "--data-dir", "{}/no"], 3, "no contains no store", id="no store"),
        pytest.param(["save", "{}/a.gz", "--name", "none"], 3, 'there is no cluster "none"', id="no cluster"),
        pytest.param(["save", "{}/a.gz", "--kubeconfig", "{}/no"], 3, "No such file", id="no kubeconfig"),
        pytest.param(["restore", "{}/no", "--data-dir", "{}/d"], 1, "no: No such file", id="no file"),
        pytest.param(
            ["restore", "{}/text", "--data-dir", "{}/d"],
            1,
            "text is not a mockube snapshot, or is damaged",
            id="not a snapshot",
        ),
        pytest.param(
            ["save", "{}/a.gz", "--etcd-prefix", "/x"],
            2,
            "--etcd-prefix needs --data-dir",
            id="prefix without a store",
        ),
        pytest.param(
            ["save", "{}/a.gz", "--etcd-servers", "http://a", "--data-dir", "{}"],
            2,
            "--etcd-servers and --data-dir cannot be set together",
            id="two stores",
        ),
    ],
)
def test_snapshot_failure_is_reported_in_one_line(snapshot, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "text").write_text("apiVersion: v1")
    ended, out, err = snapshot(*(one.format(tmp_path) for one in arguments))
    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert message in err
    assert not (tmp_path / "a.gz").exists()
    assert not (tmp_path / "d").exists()


@pytest.mark.slow
def test_killed_snapshot_save_keeps_previous_file(tmp_path):
    target = tmp_path / "a.gz"
    target.write_bytes(b"before")
    with ApiServerProcess(tmp_path) as server:
        server.signal(signal.SIGSTOP)  # the server does not respond
        saving = subprocess.Popen(
            [sys.executable, "-m", "mockube", "snapshot", "save", target, "--kubeconfig", server.kubeconfig],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        while not (tmp_path / "a.gz.tmp").exists():
            assert saving.poll() is None
        saving.kill()
        saving.wait()
        server.signal(signal.SIGCONT)
    assert target.read_bytes() == b"before"
