"""The commands that write a report: a problem with that of `mockube run` does not change how the run ends."""

import asyncio
from argparse import Namespace

from mockube.cli import report
from mockube.cli.run import _write_report


def test_report_that_fails_is_a_line(tmp_path, monkeypatch, capsys):
    async def fail(*_, ends_faults):
        assert ends_faults
        raise KeyError("replicas")

    monkeypatch.setattr("mockube.client.kubeconfig.read", lambda _: None)
    monkeypatch.setattr("mockube.report.writing.write_report", fail)
    asyncio.run(_write_report(tmp_path / "run.md", ["true"], tmp_path / "kubeconfig", 3))
    assert "run.md was not written: 'replicas'" in capsys.readouterr().err


def test_path_that_is_not_utf_8_is_printed(tmp_path, monkeypatch, capsys):
    async def write(*_):
        """Write nothing."""

    monkeypatch.setattr("mockube.report.writing.write_report", write)
    monkeypatch.setattr("mockube.cli.report.server_access", lambda _: None)
    assert report.run(Namespace(output=tmp_path / "r\udce9.md")) == 0
    assert capsys.readouterr().out.endswith("/r\\udce9.md\n")
