"""`mockube import` prints a line per object and a summary; the exit code reports failures."""

import io
from types import SimpleNamespace

import pytest

from mockube.cli.main import main
from tests.support.processes.process import ApiServerProcess

DUMP = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a, namespace: shop, uid: u, resourceVersion: "7"}
  data: {k: v}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: "No", namespace: shop}
kind: List
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
---
nothing
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ApiServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def run_import(capsys, server):
    """Run the command; return its exit code, stdout and stderr."""

    def run(*arguments):
        code = main(["import", "--kubeconfig", str(server.kubeconfig), *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err.splitlines()

    return run


@pytest.mark.slow
def test_import_reports_created_objects_and_failures_with_position(tmp_path, run_import):
    file = tmp_path / "dump.yaml"
    file.write_text(DUMP)
    code, out, err = run_import(file, "--dry-run")
    assert (code, out[-1]) == (1, "3 created, 1 failed (dry run)")
    code, out, err = run_import(file)
    assert code == 1
    assert out == [
        "configmap/a created",
        "configmap/b created",
        "2 created, 2 failed",
    ]
    assert err[0] == f"mockube: {file}: document 3: not an object: it is a text"
    assert err[1].startswith(f'mockube: {file}: document 1, item 2: configmap/No: ConfigMap "No" is invalid')
    assert run_import(file)[1] == ["configmap/a exists", "configmap/b exists", "2 exists, 2 failed"]


@pytest.mark.slow
def test_import_reads_standard_input_into_other_namespace(run_import, monkeypatch):
    text = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "gone"}}'
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert run_import("-", "--namespace", "here") == (
        0,
        ["configmap/a created", "1 created"],
        [],
    )


def test_import_of_missing_file_names_it(run_import, tmp_path):
    code, out, err = run_import(tmp_path / "no.yaml")
    assert (code, out, len(err)) == (1, [], 1)
    assert "no.yaml: No such file" in err[0]
