"""`/logs/` of a node: files, and queries of the journal."""

from datetime import UTC, datetime

import pytest
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from mockube.container_runtime.node_journal import JournalEntry
from mockube.container_runtime.node_machine import NodeFile
from mockube.kubelet.server.authorization import request_attributes
from mockube.kubelet.server.http_errors import HttpError
from mockube.kubelet.server.node_logs import NodeLogs

NODE = {"metadata": {"name": "node-1"}}
FILES = {
    "/var/log": None,
    "/var/log/pods": None,
    "/var/log/syslog": b"system\n",
    "/var/log/own/own.log": b"own\n",
    "/etc/passwd": b"secret",
}


class Machines:
    async def refresh(self, _):
        pass

    def find(self, _, path):
        assert path.startswith("/")
        if path not in FILES:
            return None
        return NodeFile(FILES[path] is None, FILES[path] or b"", 0.0, 0o644)

    def children(self, _, folder):
        return sorted(path.rpartition("/")[2] for path in FILES if path.rpartition("/")[0] == folder)

    def resolve(self, _, path):
        return path


class Services:
    async def answer(self, *_):
        return {}

    async def journal(self, _):
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return [
            JournalEntry(
                at=at.replace(second=n), unit="kubelet.service", identifier="kubelet", pid=7, text=text
            )
            for n, text in enumerate(["first", "second", "third"])
        ]


async def get(path):
    request = make_mocked_request("GET", str(URL(path)))
    return await NodeLogs(Machines(), Services()).respond(request, NODE)


async def text_of(path):
    return (await get(path)).body.decode()


async def refusal(path):
    with pytest.raises(HttpError) as refused:
        await get(path)
    return refused.value.code, str(refused.value)


async def test_folder_is_listed_as_by_go():
    response = await get("/logs/")
    assert response.content_type == "text/html"
    assert '<a href="pods/">pods/</a>\n<a href="syslog">syslog</a>' in response.text


async def test_file_is_sent():
    assert await text_of("/logs/syslog") == "system\n"
    assert await text_of("/logs/?query=/syslog") == "system\n"


@pytest.mark.parametrize(
    "path",
    [
        "/logs/nosuch",
        "/logs",
        "/logs/../../etc/passwd",
        "/logs/..%2f..%2fetc/passwd",
        "/logs/a/../../../etc/passwd",
    ],
)
async def test_nothing_outside_of_the_folder_is_sent(path):
    assert (await refusal(path))[0] == 404


async def test_folder_without_a_slash_is_redirected():
    response = await get("/logs/pods")
    assert (response.status, response.headers["Location"]) == (301, "pods/")


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("query=kubelet", ["first", "second", "third"]),
        ("query=kubelet&tailLines=1", ["third"]),
        ("query=kubelet&pattern=^s", ["second"]),
        ("query=kubelet&sinceTime=2026-01-01T00:00:01Z&untilTime=2026-01-01T00:00:01Z", ["second"]),
        ("query=kubelet&boot=-1", []),
        ("query=kubelet&boot=0&tailLines=0", []),
    ],
)
async def test_query_selects_entries_of_the_journal(query, texts):
    lines = (await text_of(f"/logs/?{query}")).splitlines()
    assert [line.rpartition(": ")[2] for line in lines if line != "-- No entries --"] == texts
    assert all(line.startswith("Jan 01 00:00:0") for line in lines if texts)


async def test_service_without_a_journal_has_files():
    assert await text_of("/logs/?query=own") == "own\n"
    assert await text_of("/logs/?query=other") == "\nlog not found for other\n"
    assert "try without specifying options" in await text_of("/logs/?query=own&tailLines=1")


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("query=", 400, 'query: Invalid value: [""]: may not be empty'),
        ("query=kubelet&tailLines=x", 400, 'strconv.Atoi: parsing "x": invalid syntax'),
        ("query=kubelet&sinceTime=x", 400, 'sinceTime: Invalid value: "x": invalid time format'),
        ("query=kubelet&boot=1", 406, "boot: Invalid value: 1: must be less than 1"),
        ("query=kubelet&tailLines=-1", 406, "must be between 0 and 100000, inclusive"),
        ("query=kubelet&pattern=[", 406, 'pattern: Invalid value: "[": error parsing regexp: missing closing ]: `[`'),
        ("query=kubelet&pattern=\\pL{10}", 406, "regular expression is too large"),
        ("query=a&query=/b", 406, "cannot specify a file and service"),
        ("query=/a&query=/b", 406, "cannot specify more than one file"),
        ("query=/syslog&tailLines=1", 406, "cannot specify file with options"),
        ("query=/nosuch", 406, "no such file or directory"),
        ("query=/../../etc/passwd", 406, "path escapes from parent"),
        ("query=a;b", 406, "input contains unsupported characters"),
        ("query=a&query=b&query=c&query=d&query=e", 406, "must have at most 4 items"),
        ("tailLines=1", 406, "cannot be empty with options"),
        ("query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z", 406, "must be after `sinceTime`"),
    ],
)  # fmt: skip
async def test_wrong_query_is_refused(query, code, message):
    refused = await refusal(f"/logs/?{query}")
    assert (refused[0], message in refused[1]) == (code, True), refused


async def test_service_whose_name_leads_out_of_the_folder_has_no_log():
    assert await text_of("/logs/?query=..") == "\nlog not found for ..\n"


async def test_query_has_no_path():
    assert (await refusal("/logs/syslog?query=kubelet"))[0] == 406


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("GET", "/logs/", "get", ("log",)),
        ("GET", "/configz", "get", ("configz", "proxy")),
        ("GET", "/metrics/cadvisor", "get", ("metrics",)),
        ("GET", "/stats/summary", "get", ("stats",)),
        ("POST", "/checkpoint/a/b/c", "create", ("checkpoint",)),
        ("POST", "/mockube/shell", "create", ("proxy",)),
        ("GET", "//logs/", "get", ("proxy",)),
        ("GET", "/logsx", "get", ("proxy",)),
        ("POST", "/run/a/b/c", "create", ("proxy",)),
    ],
)
def test_rights_of_pages_are_those_of_a_kubelet(method, path, verb, subresources):
    attributes = request_attributes(method, path, "node-1")
    assert (attributes.verb, tuple(attributes.subresources)) == (verb, subresources)
