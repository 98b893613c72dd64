"""/statusz and /flagz."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest
import yaml

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import NotAcceptable
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.request.zpages import zpages
from mockube.component_base.clock import SteppedClock
from tests.support.server.handler_requests import request_of

STATUS = "g=config.k8s.io;v={};as=Statusz"
PATHS = [
    "/",
    "/apis/apps",
    "/api",
    "/livez/ping",
    "/livez",
    "/statusz",
    "/version",
    "/index.html",
    "/mockube/snapshot",
]


async def get_page(accept, path="/statusz", minor=minors.NEWEST):
    clock = SteppedClock(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    pages = zpages(clock, FeatureGates(minor), parse(["--secure-port=7000"], {}).flags, PATHS, clock.now())
    clock.advance(timedelta(hours=1, seconds=62).total_seconds())
    return await pages[path](request_of("GET", path, Accept=accept))


@pytest.mark.parametrize("accept", ["", " ", "text/plain", "*/*", "text/*", "application/json, text/plain"])
async def test_zpages_are_plain_text_by_default(accept):
    answer = await get_page(accept)
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.body.startswith(b"\napiserver statusz\nWarning: This endpoint is not meant to be machine")
    assert b"Started:  Fri Jan  2 03:04:05 UTC 2026\nUp:  1 hr 01 min 02 sec\n" in answer.body
    assert answer.body.endswith(b"Paths:  /livez /statusz /version\n")


async def test_zpages_json_has_requested_version():
    answer = await get_page(f"application/json;{STATUS.format('v1beta1')}")
    assert answer.content_type == f"application/json;{STATUS.format('v1beta1')}"
    shown = orjson.loads(answer.body)
    assert (shown["kind"], shown["apiVersion"], shown["metadata"]) == (
        *("Statusz", "config.k8s.io/v1beta1"),
        {"name": "apiserver"},
    )
    assert (shown["startTime"], shown["uptimeSeconds"]) == ("2026-01-02T03:04:05Z", 3662)
    old = await get_page(f"application/yaml;{STATUS.format('v1alpha1')}")
    assert yaml.safe_load(old.body)["apiVersion"] == "config.k8s.io/v1alpha1"
    assert "This version of the statusz endpoint is deprecated." in old.headers["Warning"]


@pytest.mark.parametrize(
    "accept", ["application/json", "text/html", f"application/json;{STATUS.format('v1')}", "text/plain;v=v1"]
)
async def test_unsupported_zpages_format_is_not_acceptable(accept):
    with pytest.raises(NotAcceptable, match="application/json, application/yaml, text/plain"):
        await get_page(accept)


async def test_flagz_lists_flags_with_values():
    lines = (await get_page("", "/flagz")).body.decode().splitlines()
    assert {"secure-port=7000", "request-timeout=1m0s", "tls-san=[]", "data-dir="} <= {*lines}
    assert "service-node-port-range=30000-32767" in lines


async def test_statusz_names_release_of_minor():
    shown = orjson.loads((await get_page(f"application/json;{STATUS.format('v1beta1')}", minor="1.36")).body)
    assert (shown["binaryVersion"], shown["emulationVersion"]) == (minors.RELEASES["1.36"], "1.36")


@pytest.mark.parametrize(
    ("minor", "settings", "served"),
    [
        ("1.35", (), set()),
        ("1.36", (), {"/flagz", "/statusz"}),
        ("1.37", (("ComponentFlagz", False),), {"/statusz"}),
        ("1.37", (("AllBeta", False),), set()),
    ],
)
def test_zpages_are_served_if_their_gates_are_on(minor, settings, served):
    clock = SteppedClock()
    assert zpages(clock, FeatureGates(minor, settings), dict, (), clock.now()).keys() == served
