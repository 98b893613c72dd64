"""Selection of the kwok object for a pod, and of its entry for a container or port."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.kwok.host_log import HostLog
from mockube.container_runtime.runtime import RuntimeProblem
from mockube.kubelet.kwok_objects import choose_entry, selects

POD = {"metadata": {"name": "p", "namespace": "ns"}}
STARTED = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, True),
        ({}, True),
        ({"matchNamespaces": ["ns", "other"]}, True),
        ({"matchNamespaces": ["other"]}, False),
        ({"matchNames": ["p"]}, True),
        ({"matchNames": ["p"], "matchNamespaces": ["other"]}, False),
        ({"matchNames": ["q"]}, False),
    ],
)
def test_selector_matches_names_and_namespaces(selector, selected):
    assert selects({"spec": {"selector": selector}}, POD) is selected


def test_entry_naming_container_precedes_general_one():
    everybody, own, again = {"logsFile": "a"}, {"containers": ["c"], "logsFile": "b"}, {"containers": ["c"]}
    assert choose_entry([everybody, own, again], "c") is own
    assert choose_entry([everybody, own], "d") is everybody
    assert choose_entry([own], "d") is None
    assert choose_entry([{"ports": [80]}, {"target": {}}], 81) == {"target": {}}


def test_log_file_with_its_times_is_log(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"2029-12-31T00:00:00.5Z stderr F old\nplain line\n2030-01-01T00:00:01Z stdout P half\n")
    log = HostLog(path, STARTED)
    assert log.is_behind(STARTED)
    assert [tuple(line) for line in log.advance(STARTED)] == [
        (datetime(2029, 12, 31, 0, 0, 0, 500_000, tzinfo=UTC), 2, b"old\n"),
        (STARTED, 1, b"plain line\n"),
        (datetime(2030, 1, 1, 0, 0, 1, tzinfo=UTC), 1, b"half"),
    ]
    assert not log.is_behind(STARTED)
    log.close()


def test_missing_log_file_is_named(tmp_path):
    with pytest.raises(RuntimeProblem, match="no-file: No such file or directory"):
        HostLog(tmp_path / "no-file", STARTED)
