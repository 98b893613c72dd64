"""Requests are counted under upstream's labels."""

from types import SimpleNamespace

import pytest

from mockube.apiserver.metrics.aggregation import UnavailableServices
from mockube.apiserver.metrics.requests import Labels, RequestMetrics
from mockube.apiserver.metrics.watches import WatchMetrics
from mockube.component_base.metrics import MetricsRegistry
from tests.support.metric_samples import sample_value

CREATE = Labels("POST", "", "apps", "v1", "deployments", "", "resource")
BARE = {
    "verb": "POST",
    "group": "apps",
    "version": "v1",
    "resource": "deployments",
    "subresource": "",
    "scope": "resource",
    "component": "apiserver",
}


@pytest.fixture
def registry():
    return MetricsRegistry()


@pytest.fixture
def requests(registry):
    return RequestMetrics(lambda *_: None, registry)


def finish(requests, labels, **options):
    requests.end(requests.begin(labels), 201, 3.0, 10, **options)


def test_time_of_webhooks_is_not_in_the_duration_of_the_objective(requests, registry):
    finish(requests, CREATE, webhooks=1.0)
    whole = sample_value(registry, "apiserver_request_duration_seconds_sum", {**BARE, "dry_run": ""})
    assert (whole, sample_value(registry, "apiserver_request_sli_duration_seconds_sum", BARE)) == (3, 2)


def test_dry_run_does_not_count_for_the_objective(requests, registry):
    finish(requests, CREATE._replace(dry_run="All"))
    whole = sample_value(registry, "apiserver_request_duration_seconds_count", {**BARE, "dry_run": "All"})
    assert (whole, sample_value(registry, "apiserver_request_sli_duration_seconds_count", BARE)) == (1, None)


def test_request_without_end_has_no_duration_and_is_in_flight(requests, registry):
    requests.begin(CREATE)
    kinds = [
        sample_value(registry, "apiserver_current_inflight_requests", {"request_kind": kind})
        for kind in ("mutating", "readOnly")
    ]
    duration = {**BARE, "dry_run": ""}
    assert kinds == [1, 0]
    assert sample_value(registry, "apiserver_request_duration_seconds_count", duration) is None


def test_terminated_requests_are_counted_by_code(requests, registry):
    requests.terminate(requests.begin(CREATE), 429)
    assert sample_value(registry, "apiserver_request_terminations_total", {**BARE, "code": "429"}) == 1


def test_requests_for_a_deprecated_api_name_the_release_that_removes_it(registry):
    resource = SimpleNamespace(deprecated="old is deprecated in v1.21+, unavailable in v1.25+")
    requests = RequestMetrics(lambda *_: resource, registry)
    finish(requests, CREATE)
    labels = {name: BARE[name] for name in ("group", "version", "resource", "subresource")}
    name = "apiserver_requested_deprecated_apis"
    assert sample_value(registry, name, {**labels, "removed_release": "1.25"}) == 1


def test_sent_events_are_counted_with_their_sizes(registry):
    resource = SimpleNamespace(group="", version="v1", name="pods")
    WatchMetrics(registry).of(resource).add([b"x" * 100, b"x" * 2000])
    labels = {"group": "", "version": "v1", "resource": "pods"}
    assert sample_value(registry, "apiserver_watch_events_total", labels) == 2
    assert sample_value(registry, "apiserver_watch_events_sizes_bucket", {**labels, "le": "1024"}) == 1


def test_unavailable_api_service_is_counted_once_until_it_is_available(registry):
    services = UnavailableServices(registry)
    for reason in ("", "ServiceNotFound", "ServiceNotFound", "", "EndpointsNotFound"):
        services.record("v1.example.com", reason)
    name = "aggregator_unavailable_apiservice"
    assert sample_value(registry, name, {"name": "v1.example.com"}) == 1
    totals = [
        sample_value(registry, f"{name}_total", {"name": "v1.example.com", "reason": reason})
        for reason in ("ServiceNotFound", "EndpointsNotFound")
    ]
    assert totals == [1, 1]
    services.forget("v1.example.com")
    assert sample_value(registry, name, {"name": "v1.example.com"}) is None
