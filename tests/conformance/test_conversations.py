"""Replay every recorded conversation with a real server and compare the responses.

A conversation that differs fails the test of its file unless `differences.json` lists it with the reason. Every file is
replayed against a fresh server, once; those whose requests all concern the namespaces of their conversations, or change
nothing, share one, and are replayed at the same time, because most of them wait. The runner is part of the recordings.
"""

import http.client
import re
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import orjson
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.schema import minors
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.http.server import Listener, bind
from mockube.apiserver.running import Dependencies, running
from mockube.apiserver.serving_credentials import load_credentials
from mockube.component_base.clock import RealClock
from mockube.embedded.background_loop import BackgroundContext
from mockube.kubelet.node_pools.pool import plain_nodes
from mockube.launch import LaunchOptions, temporary_server_flags
from tests.support.processes.process import ROOT, ApiServerProcess, ManagerProcess, tls
from tests.support.recorded.recordings import COUNTS, DIFFERENCES, FOLDER, jobs_of, reasons

OLDER = tuple(minor for minor in minors.OLDER if (FOLDER / minor).is_dir())
"""Other minor versions that were recorded."""
RUNNER = FOLDER / "golden.py"
FILES = sorted(
    str(path.relative_to(FOLDER).with_suffix(""))
    for folder in ("api", "answers", "rights", "controllers", *OLDER)
    for path in (FOLDER / folder).rglob("*.jsonl")
)
_IN_OWN_NAMESPACE = re.compile(r"/(api/v1|apis/[^/]+/[^/]+)/namespaces/\$\{ns\}(/|$|\?)")
TIMING = "timing: "
"""Prefix of a reason if the conversation may also be equal."""


def conversations(recording):
    return map(orjson.loads, (FOLDER / f"{recording}.jsonl").read_bytes().splitlines())


def is_confined(recording):
    """Whether the requests of its conversations concern their own namespaces, or change nothing."""
    return all(
        _IN_OWN_NAMESPACE.match(step["request"]["path"]) or changes_nothing(step["request"])
        for case in conversations(recording)
        for step in case["steps"]
        if "path" in step["request"]
    )


def changes_nothing(request):
    """A watch changes nothing, but sees what others change."""
    is_read = request["method"] == "GET" and "watch" not in request["path"]
    return is_read or "dryRun=All" in request["path"]


def by_server():
    """Return the files by the server against which they are replayed: the confined ones of a folder share one."""
    found = {}
    for recording in FILES:
        folder = recording.rpartition("/")[0]
        found.setdefault(f"{folder}/*" if is_confined(recording) else recording, []).append(recording)
    return found


def minor_and_part(recording):
    """Return the minor and the rest of a recording's name; those of the newest minor do not name it."""
    minor, _, rest = recording.partition("/")
    return (minor, rest) if minor in OLDER else (minors.NEWEST, recording)


def test_every_recording_is_counted():
    found = {
        str(path.relative_to(FOLDER).with_suffix("")): path.read_bytes().count(b"\n")
        for path in FOLDER.rglob("*.jsonl")
    }
    assert found == COUNTS


def test_every_listed_difference_names_a_recording():
    for name, by_reason in DIFFERENCES.items():
        listed = [id_ for ids in by_reason.values() for id_ in ids]
        assert len(listed) == len(set(listed)), name
        assert set(listed) <= {case["id"] for case in conversations(name)}, name


def test_fidelity_page_counts_every_difference():
    page = (ROOT / "docs/fidelity/recordings.md").read_text()
    for name, count in COUNTS.items():
        differing = DIFFERENCES.get(name, {})
        same = count - sum(map(len, differing.values()))
        assert f"| {name} | {same:,} | {count:,} | {'; '.join(differing)} |" in page


class OneSecond(RealClock):
    """A clock whose wall time stands still, while its timers run."""

    def __init__(self):
        self._now = super().now()

    def now(self):
        return self._now


@pytest.fixture
def url(recordings, tmp_path):
    """Yield the address of a fresh server.

    Beside `rights` and `controllers` a controller manager runs, as when they were recorded. The entries of managedFields
    are ordered by the second of their last change; each of those conversations was recorded within one second.
    """
    flags = ("--token-auth-file", str(FOLDER / "tokens.csv"), "--service-cluster-ip-range", "10.0.0.0/16")
    minor, part = minor_and_part(recordings[0])
    of_minor = ("--kubernetes-version", minor)
    with ExitStack() as stack:
        if part == "api/managedfields":
            yield stack.enter_context(server_within_one_second(tmp_path, flags + of_minor))
            return
        server = stack.enter_context(ApiServerProcess(tmp_path, *flags, *of_minor))
        if part.startswith(("rights/", "controllers/")):
            stack.enter_context(
                ManagerProcess(server.kubeconfig, "--use-service-account-credentials", *of_minor)
            )
            wait_for_aggregated_roles(server)
        yield server.url


def wait_for_aggregated_roles(server):
    """The aggregated roles get their rules from a controller, which had run long before a recording began."""
    connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=tls(server.kubeconfig))
    with closing(connection):

        def rules_of(role):
            connection.request("GET", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}")
            return orjson.loads(connection.getresponse().read()).get("rules") or []

        for role, part in (("view", ""), ("edit", "view"), ("admin", "edit")):
            expected = []
            while not expected or any(rule not in rules_of(role) for rule in expected):
                expected = rules_of(f"system:aggregate-to-{role}") + (rules_of(part) if part else [])


@contextmanager
def server_within_one_second(folder, flags):
    clock = OneSecond()
    config = parse(
        LaunchOptions(
            nodes=plain_nodes(0), packs="", flags=(*temporary_server_flags(folder), *flags)
        ).server_arguments(),
        {},
    )
    credentials = load_credentials(config, "", now=clock.now(), random=SystemRandom())
    with bind("127.0.0.1", 0) as socket:
        dependencies = Dependencies(
            listeners=[Listener(socket=socket, tls=credentials.tls)],
            credentials=credentials,
            clock=clock,
            random=SystemRandom(),
            drain_seconds=0,
        )
        hosted = BackgroundContext(lambda: running(config, dependencies), name="server")
        hosted.start()
        hosted.opened.result()
        yield f"https://127.0.0.1:{dependencies.port}"
        hosted.close()


@pytest.fixture(params=[pytest.param(recordings, id=name) for name, recordings in by_server().items()])
def recordings(request):
    return request.param


@pytest.mark.timeout(600)
def test_replayed_conversations_match_recordings(recordings, url, tmp_path):
    differing = replay(recordings, url, tmp_path / "report.jsonl")
    listed = {id_: reason for recording in recordings for id_, reason in reasons(recording).items()}

    unlisted = {id_: rows for id_, rows in differing.items() if id_ not in listed}
    assert not unlisted, f"these differ and are not in differences.json: {unlisted}"
    same = [id_ for id_ in listed if id_ not in differing and not listed[id_].startswith(TIMING)]
    assert not same, f"these are the same now: take them out of differences.json: {same}"


def replay(recordings, url, report):
    """Replay some files; return the first differences of each conversation that differs.

    A conversation that pauses expects controllers to have worked meanwhile. If it differs, it is replayed once more, alone.
    """
    jobs = max(jobs_of(minor_and_part(recording)[1]) for recording in recordings)
    count = sum(COUNTS[recording] for recording in recordings)
    differing = run(recordings, url, report, count, "--jobs", str(jobs))
    if differing and (again := [id_ for id_ in paused(recordings) if id_ in differing]):
        selected = [flag for id_ in again for flag in ("--case", id_)]
        alone = run(recordings, url, report, len(again), *selected)
        differing = {id_: rows for id_, rows in differing.items() if id_ not in again} | alone
        print(f"replayed alone: {', '.join(again)}")
    print(f"{', '.join(recordings)}: {count - len(differing)} of {count} the same")
    return differing


def paused(recordings):
    """Return the ids of the conversations with pauses, which are unique in these files."""
    return [
        case["id"]
        for recording in recordings
        for case in conversations(recording)
        if any("pause" in step["request"] for step in case["steps"])
    ]


def run(recordings, url, report, count, *flags):
    """Replay `count` conversations; return the first differences of each that differs."""
    files = [str(FOLDER / f"{recording}.jsonl") for recording in recordings]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.support.recorded.conversation_runner", str(RUNNER)),
            *("run", *files, *flags, "--server", url, "--token", "admintoken", "--report", str(report)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    differing = {
        case["id"]: case["differences"][:3] for case in map(orjson.loads, report.read_bytes().splitlines())
    }
    summary = f"{count - len(differing)} passed, {len(differing)} failed"
    assert summary in done.stdout, done.stdout + done.stderr
    return differing
