"""`/metrics/probes` counts the successes and failures of probes."""

from datetime import UTC, datetime

import pytest

from mockube.component_base.exposition import metrics_text
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.records import Records
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.pod_lifecycle.probe_results import probe_results
from mockube.kubelet.pod_lifecycle.probe_totals import ProbeTotals, simulated_totals
from mockube.kubelet.pod_lifecycle.probing import Probe
from mockube.kubelet.probes.totals import ProbeRecords
from mockube.kubelet.server.probe_metrics import probe_metrics
from tests.support.images import PREDICTIONS

PROBE = {"httpGet": {"port": 80}, "periodSeconds": 10, "failureThreshold": 3}
CONTEXT = ContainerContext(predictions=PREDICTIONS)
NOW = datetime(2030, 1, 1, 0, 0, 25, tzinfo=UTC)


def totals_of(container, annotations, seconds):
    script = script_of({f"mockube.dev/{name}": text for name, text in annotations.items()})
    results = probe_results({"spec": {"containers": [container]}}, container, script, CONTEXT)
    return simulated_totals(container, results, script.ready_after, seconds)


@pytest.mark.parametrize(
    ("annotations", "probe", "seconds", "expected"),
    [
        ({}, {"readinessProbe": PROBE}, 0, (1, 0)),
        ({}, {"readinessProbe": PROBE}, 25, (3, 0)),
        ({}, {"livenessProbe": {**PROBE, "initialDelaySeconds": 20}}, 29, (0, 0)),
        ({}, {"livenessProbe": {**PROBE, "initialDelaySeconds": 20}}, 40, (2, 0)),
        ({}, {"startupProbe": PROBE}, 100, (1, 0)),
        ({"startup-after": "15s"}, {"startupProbe": PROBE}, 15, (0, 1)),
        ({"startup-after": "15s"}, {"startupProbe": PROBE}, 100, (1, 1)),
        ({"startup-after": "never"}, {"startupProbe": PROBE}, 100, (0, 3)),
        ({"fail-readiness-after": "15s"}, {"readinessProbe": PROBE}, 35, (2, 2)),
        ({"ready-after": "15s"}, {"readinessProbe": PROBE}, 35, (2, 2)),
        ({"fail-liveness-after": "0s"}, {"livenessProbe": PROBE}, 1000, (0, 3)),
    ],
)
def test_probe_results_follow_time_of_run(annotations, probe, seconds, expected):
    (totals,) = totals_of({"name": "c", **probe}, annotations, seconds).values()
    assert (totals.successful, totals.failed) == expected
    assert set(totals.bucket_counts) == {expected[0]}


def test_other_probes_wait_for_startup_probe():
    container = {"name": "c", "startupProbe": PROBE, "livenessProbe": PROBE}
    found = totals_of(container, {"startup-after": "15s"}, 30)
    assert (found[Probe.LIVENESS].successful, found[Probe.STARTUP].successful) == (1, 1)


def test_probe_totals_have_durations_of_successes():
    totals = ProbeTotals()
    for success, seconds in ((True, 0.003), (True, 0.3), (False, 9.0)):
        totals.add(success=success, seconds=seconds)
    assert (totals.successful, totals.failed, totals.seconds) == (2, 1, 0.303)
    assert totals.bucket_counts == [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]


def pod(name="p", **fields):
    running = {"name": "c", "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}}}
    return {
        "metadata": {"name": name, "namespace": "d", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c", **fields}]},
        "status": {"phase": "Running", "containerStatuses": [running]},
    }


def total(kind, result, count):
    labels = f'container="c",namespace="d",pod="p",pod_uid="uid-p",probe_type="{kind}",result="{result}"'
    return f"prober_probe_total{{{labels}}} {count}"


def lines(*pods, records=None):
    found = probe_metrics(pods, NOW, records or ProbeRecords(Records()), CONTEXT)
    return metrics_text(found).decode().splitlines()


def test_probe_metrics_have_upstreams_names_and_labels():
    found = lines(pod(readinessProbe=PROBE), pod("other"))
    labels = 'container="c",namespace="d",pod="p",probe_type="Readiness"'
    assert found[:3] == [
        "# HELP prober_probe_duration_seconds [ALPHA] Duration in seconds for a probe response.",
        "# TYPE prober_probe_duration_seconds histogram",
        f'prober_probe_duration_seconds_bucket{{{labels},le="0.005"}} 3',
    ]
    assert found[-6:] == [
        f'prober_probe_duration_seconds_bucket{{{labels},le="+Inf"}} 3',
        f"prober_probe_duration_seconds_sum{{{labels}}} 0",
        f"prober_probe_duration_seconds_count{{{labels}}} 3",
        (
            "# HELP prober_probe_total [BETA] Cumulative number of a liveness, readiness or startup probe for a "
            "container by result."
        ),
        "# TYPE prober_probe_total counter",
        total("Readiness", "successful", 3),
    ]


def test_process_probe_totals_replace_simulated_ones():
    subject, records = pod(livenessProbe=PROBE), ProbeRecords(Records())
    for _ in range(4):
        records.processes.count(subject["metadata"]["uid"], "c", Probe.LIVENESS, success=False, seconds=0.0)
    found = lines(subject, records=records)
    assert found[2:] == [total("Liveness", "failed", 4)]


def test_pod_without_probes_has_no_probe_metrics():
    assert lines(pod()) == []
