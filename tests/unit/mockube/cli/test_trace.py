"""`mockube trace`: what it reads, where it writes, and what it says of what is missing."""

from contextlib import asynccontextmanager

import orjson
import pytest

from mockube.apimachinery.status import Expired, Forbidden
from mockube.cli import trace
from mockube.cli.parsing import CommandParser
from mockube.failure import UsageError
from tests.support.report_server import ReportServer
from tests.support.reports import changes_to, request, tree_of

CHANGES = changes_to("Pod", "web", tree_of("Pod", "web"))


@pytest.fixture
def run(monkeypatch):
    """Run the command with a server."""

    def run_with(server, *arguments):
        @asynccontextmanager
        async def open_client(*_):
            yield server

        monkeypatch.setattr(trace, "open_client", open_client)
        monkeypatch.setattr(trace, "server_access", lambda _: None)
        parser = CommandParser(prog="mockube trace")
        trace.add_flags(parser)
        return trace.run(parser.read(arguments, {}))

    return run_with


def names(content):
    return [each["name"] for each in orjson.loads(content)["traceEvents"] if each["ph"] != "M"]


def test_kinds_that_the_user_may_not_list_are_missing_in_the_file_and_named(run, tmp_path, capsys):
    server = ReportServer(
        objects={"requests": [request("1", 200)]},
        errors={kind: Forbidden("not yours") for kind in ("controllers", "marks", "watch")},
    )
    path = tmp_path / "traces/run.json"
    assert run(server, "-o", str(path)) == 0
    assert names(path.read_bytes()) == ["create pods"]
    assert capsys.readouterr().err.splitlines() == [
        "mockube: the trace has no controllers: not yours",
        "mockube: the trace has no marks: not yours",
        f"mockube: {path} has 0 writes and 1 request: open it at https://ui.perfetto.dev",
    ]


def test_trace_is_written_to_stdout_alone(run, capsysbinary):
    assert run(ReportServer(objects={"requests": [request("1", 200)]}), "-o", "-") == 0
    output, errors = capsysbinary.readouterr()
    assert (names(output), errors) == (["create pods"], b"")


def test_changes_that_are_left_out_are_named(run, tmp_path, capsys):
    server = ReportServer(changes=CHANGES, errors={"watch": Expired("it was compacted")})
    assert run(server, "-o", str(tmp_path / "run.json")) == 0
    assert "the newest ones are left out: it was compacted\n" in capsys.readouterr().err
    assert names((tmp_path / "run.json").read_bytes()) == ["ADDED by kubernetes-admin"]


def test_file_that_cannot_be_written_is_refused_before_anything_is_read(run, tmp_path):
    server = ReportServer()
    with pytest.raises(UsageError, match="is a folder"):
        run(server, "-o", str(tmp_path))
    assert not server.sent
