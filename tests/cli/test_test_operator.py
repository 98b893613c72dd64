"""`mockube test-operator` judges a careful operator and a careless one."""

import os
import sys
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from mockube.cli import test_operator
from mockube.cli.main import main
from mockube.judging import run, trial_cluster

EXAMPLE = Path(__file__).parents[2] / "examples/test-operator"
pytestmark = pytest.mark.timeout(
    600
)  # each judgement has clusters of its own, and waits until they are quiet

QUICK = ("--timeout=20", "--skip=rights")
SHORT = "--timeout=6"  # what a careless operator does not do is waited for so long


def _judge(program, folder, *flags):
    """Return the exit code, and the judgements by name."""
    report = folder / f"{program}.json"
    files = [f"--filename={EXAMPLE / 'deploy.yaml'}", f"--sample={EXAMPLE / 'sample.yaml'}"]
    command = [sys.executable, str(EXAMPLE / f"{program}.py")]
    code = main(["test-operator", *files, f"--report={report}", *QUICK, *flags, "--", *command])
    return code, {each["name"]: each for each in orjson.loads(report.read_text())["judgements"]}


def _rules(judgement):
    return {(each["rule"], each["subject"]) for each in judgement["findings"]}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    """Wait for less than for operators of users: those of the examples react within a second."""
    setup_of = test_operator._setup

    def short(*arguments):
        return replace(
            setup_of(*arguments), quiet_seconds=1.0, idle_seconds=1.0, start_seconds=6.0, reaction_seconds=3.0
        )

    monkeypatch.setattr(test_operator, "_setup", short)
    monkeypatch.setattr(trial_cluster, "_POLL_SECONDS", 0.5)


def test_careful_operator_passes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, found = _judge("careful", tmp_path, "--only=drift,updates", "--report=careful.xml")
    assert code == 0, capsys.readouterr().out
    assert {name: each["outcome"] for name, each in found.items()} == dict.fromkeys(
        ("install", "drift", "updates"), "passed"
    )
    assert found["drift"]["figures"]["objects"] == "1"
    assert "careful.py: passed; 3 passed; 0 findings" in capsys.readouterr().out
    assert 'failures="0"' in Path("careful.xml").read_text()


def test_careless_operator_fails_until_its_findings_are_in_the_baseline(tmp_path, capsys):
    code, found = _judge("careless", tmp_path, "--only=deletions,drift", SHORT)
    assert code == 1
    assert "error left-over: ConfigMap blog-note" in capsys.readouterr().out
    assert ("left-over", "ConfigMap blog-note") in _rules(found["deletions"])
    assert ("deletion-not-repaired", "Deployment blog") in _rules(found["drift"])
    assert ("deletion-not-repaired", "ConfigMap blog-note") in _rules(found["drift"])
    known = [
        {"fingerprint": finding["fingerprint"], "judgement": name}
        for name, judgement in found.items()
        for finding in judgement["findings"]
    ]
    Path("known.json").write_bytes(orjson.dumps({"findings": known}))
    code, found = _judge("careless", tmp_path, "--only=drift", "--baseline=known.json", SHORT)
    assert code == 0
    assert ("deletion-not-repaired", "Deployment blog") in _rules(found["drift"])


def test_judgement_without_input_is_not_applicable_and_baseline_is_written(tmp_path):
    code, found = _judge(
        "careful", tmp_path, "--only=upgrade,webhooks", "--baseline=new.json", "--write-baseline"
    )
    assert code == 0
    assert found["upgrade"]["outcome"] == found["webhooks"]["outcome"] == "not applicable"
    assert found["upgrade"]["reason"].startswith("no version before: --previous names")
    assert orjson.loads(Path("new.json").read_bytes()) == {"findings": []}


def test_operator_that_ends_is_an_error(tmp_path, capsys):
    Path("broken.py").write_text("raise SystemExit('no configuration')")
    files = [f"-f={EXAMPLE / 'deploy.yaml'}", f"--sample={EXAMPLE / 'sample.yaml'}"]
    code = main(["test-operator", *files, *QUICK, SHORT, "--only=drift", "--", sys.executable, "broken.py"])
    output = capsys.readouterr().out
    assert code == 1
    assert "The operator: ended with the code 1, although nothing was disturbed" in output
    assert "no configuration" in output
    assert "the operator reached no state at rest when nothing was disturbed: see `install`" in output


OF_POD = """
import json, os, sys
account = "/var/run/secrets/kubernetes.io/serviceaccount"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
cluster = {"server": f"https://{host}:{port}", "certificate-authority": f"{account}/ca.crt"}
context = {"cluster": "c", "user": "u", "namespace": open(f"{account}/namespace").read()}
config = {
    "clusters": [{"name": "c", "cluster": cluster}],
    "users": [{"name": "u", "user": {"token": open(f"{account}/token").read()}}],
    "contexts": [{"name": "x", "context": context}],
    "current-context": "x",
}
json.dump(config, open("/tmp/kubeconfig", "w"))
os.environ["KUBECONFIG"] = "/tmp/kubeconfig"
os.execv(sys.executable, [sys.executable, sys.argv[1]])
"""


def test_operator_has_the_configuration_of_its_pod(tmp_path, capsys):
    (tmp_path / "of_pod.py").write_text(OF_POD)
    files = [f"--filename={EXAMPLE / 'deploy.yaml'}", f"--sample={EXAMPLE / 'sample.yaml'}"]
    command = [sys.executable, str(tmp_path / "of_pod.py"), str(EXAMPLE / "careful.py")]
    code = main(["test-operator", *files, *QUICK, "--only=install", "--", *command])
    assert code == 0, capsys.readouterr().out


def test_operator_whose_pod_has_unsupported_volumes_is_tested_without_them(tmp_path, capsys):
    spec = "spec: {serviceAccountName: websites, "
    text = (EXAMPLE / "deploy.yaml").read_text()
    assert text.count(spec) == 1
    volume = "volumes: [{name: a, csi: {driver: example.com}}], "
    mounts = text.replace(spec, f"{spec}{volume}").replace(
        "{name: operator, ", "{name: operator, volumeMounts: [{name: a, mountPath: /a}], "
    )
    (tmp_path / "deploy.yaml").write_text(mounts)
    files = [f"--filename={tmp_path / 'deploy.yaml'}", f"--sample={EXAMPLE / 'sample.yaml'}"]
    command = [sys.executable, str(EXAMPLE / "careful.py")]
    code = main(["test-operator", *files, *QUICK, "--only=install", "--", *command])
    assert code == 0, capsys.readouterr().out


def _report_without_judgements(monkeypatch, *flags):
    monkeypatch.setattr(run, "judge_all", lambda *_, **__: [])
    files = [f"-f={EXAMPLE / 'deploy.yaml'}", f"--sample={EXAMPLE / 'sample.yaml'}"]
    return main(["test-operator", *files, "--report=out.json", *flags, "--", "true"])


def test_files_are_written_although_the_output_is_not_read(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as closed_pipe:
        monkeypatch.setattr(sys, "stdout", closed_pipe)
        _report_without_judgements(monkeypatch)
    assert orjson.loads(Path("out.json").read_bytes())["judgements"] == []


def test_findings_are_printed_although_a_file_cannot_be_written(monkeypatch, capsys):
    Path("out.json").mkdir()
    assert _report_without_judgements(monkeypatch) != 0
    assert "true: passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "true"], "-f is missing"),
        (["-f", "deploy.yaml"], "no command: use `mockube test-operator -f FILE --sample=FILE -- CMD ...`"),
        (["-f", "deploy.yaml", "--", "true"], "--sample is missing"),
        (["-f", "deploy.yaml", "--sample=none.yaml", "--", "true"], 'the path "none.yaml" does not exist'),
        (["-f", "deploy.yaml", "--sample=deploy.yaml", "--", "true"], "no custom resource of a kind"),
        (
            ["-f", "sample.yaml", "--sample=sample.yaml", "--", "true"],
            "no CustomResourceDefinition in the manifests",
        ),
        (
            ["-f", "deploy.yaml", "--sample=sample.yaml", "--", "no-such-program"],
            "no-such-program: command not found",
        ),
        (
            ["--only=drifts", "-f", "deploy.yaml", "--", "true"],
            '--only: there is no judgement drifts: did you mean "drift"?',
        ),
        (
            ["--only=", "-f", "deploy.yaml", "--", "true"],
            "--only names no judgement; there are install, rights,",
        ),
        (["--report=a.txt", "--", "true"], "--report: a.txt: the name must end with .json"),
        (["--report=no/a.xml", "--", "true"], "--report: no/a.xml: the folder does not exist"),
        (["--write-baseline", "--", "true"], "--write-baseline needs --baseline=FILE"),
        (
            ["--write-baseline", "--baseline=no/a.json", "--", "true"],
            "--baseline: no/a.json: the folder does not exist",
        ),
        (
            ["--service-account=a", "-f", "deploy.yaml", "--sample=sample.yaml", "--", "true"],
            "is not NAMESPACE/NAME",
        ),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(arguments, message, monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLE)
    assert main(["test-operator", *arguments]) != 0
    assert message in capsys.readouterr().err


def test_address_of_webhooks_is_refused_before_anything_starts(monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLE)
    with pytest.raises(SystemExit):
        main(["test-operator", "--webhook-service=a", "-f", "deploy.yaml", "--", "true"])
    assert '"a" is invalid, expected NAMESPACE/NAME=HOST:PORT' in capsys.readouterr().err
