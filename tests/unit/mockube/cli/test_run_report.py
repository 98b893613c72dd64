"""The report of `mockube run`: a problem with it does not change how the run ends."""

import asyncio

from mockube.cli.run import _write_report


def test_report_that_fails_is_a_line(tmp_path, monkeypatch, capsys):
    async def fail(*_, ends_faults):
        assert ends_faults
        raise KeyError("replicas")

    monkeypatch.setattr("mockube.client.kubeconfig.read", lambda _: None)
    monkeypatch.setattr("mockube.report.writing.write_report", fail)
    asyncio.run(_write_report(tmp_path / "run.md", ["true"], tmp_path / "kubeconfig", 3))
    assert "run.md was not written: 'replicas'" in capsys.readouterr().err
