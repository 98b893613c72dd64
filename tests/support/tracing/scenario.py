"""Requests whose spans are recorded from a real kube-apiserver, and compared with ours."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.recorded import recordings
from tests.support.server.webhook_server import MUTATING, VALIDATING
from tests.support.tracing.collector import CollectedSpan, Collector

RECORDED = recordings.FOLDER / "traces.jsonl"
FOLDER = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}
_OTHER = _MAP | {"metadata": {"name": "b"}}
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Step:
    """A request; its trace is that with the number of the step as its ID, or one that is linked to it."""

    name: str
    method: str
    path: str
    body: Any = None
    media_type: str = "application/json"
    user: str = "admin"
    headers: Mapping[str, str] = field(default_factory=dict)


STEPS = (
    Step("create", "POST", FOLDER, _MAP),
    Step("create what exists", "POST", FOLDER, _MAP),
    Step("create what is invalid", "POST", FOLDER, _MAP | {"metadata": {"name": "A_"}}),
    Step("get", "GET", f"{FOLDER}/a"),
    Step("get what is missing", "GET", f"{FOLDER}/none"),
    Step("list", "GET", f"{FOLDER}?resourceVersion=0"),
    Step("update", "PUT", f"{FOLDER}/a", _MAP | {"data": {"x": "z"}}),
    Step("patch", "PATCH", f"{FOLDER}/a", {"data": {"x": "w"}}, _MERGE),
    Step("patch what is missing", "PATCH", f"{FOLDER}/none", {"data": {"x": "w"}}, _MERGE),
    Step("apply", "PATCH", f"{FOLDER}/a?fieldManager=m&force=true", _MAP, _APPLY),
    Step("apply what is missing", "PATCH", f"{FOLDER}/b?fieldManager=m", _OTHER, _APPLY),
    Step("watch", "GET", f"{FOLDER}?watch=1&timeoutSeconds=1&resourceVersion=0"),
    Step("delete", "DELETE", f"{FOLDER}/a"),
    Step("delete with options", "DELETE", f"{FOLDER}/b", {"apiVersion": "v1", "kind": "DeleteOptions"}),
    Step("review", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    }),
    Step("health", "GET", "/livez"),
    Step("missing path", "GET", "/none"),
    Step("forbidden", "GET", f"{FOLDER}/a", user="alice"),
    Step("impersonated", "GET", f"{FOLDER}/none", headers={"Impersonate_User": "alice", "Impersonate_Group": "system:masters"}),
    Step("webhooks", "POST", FOLDER, _MAP),
)  # fmt: skip


async def run(client_of: Any, hooks: Any, collector: Collector, *, settle: Any) -> dict[str, Any]:
    """Send the requests, and return the tree of spans of each; `settle` waits until webhooks are called."""
    for number, step in enumerate(STEPS, 1):
        if step.name == "webhooks":
            await _register(client_of("admin"), hooks)
            await settle()
        headers = dict(step.headers) | {
            "traceparent": f"00-{number:032x}-{number:016x}-01",
            "Content_Type": step.media_type,
        }
        await client_of(step.user).send(step.method, step.path, step.body, **headers)
    return {step.name: tree(collector, f"{number:032x}") for number, step in enumerate(STEPS, 1)}


async def _register(client: Any, hooks: Any) -> None:
    for path, kind, answer in ((MUTATING, "Mutating", "label"), (VALIDATING, "Validating", "ok")):
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [hooks.hook(answer)],
        }
        response = await client.send("POST", path, body)
        assert response.status == 201, response.body


def tree(collector: Collector, trace_id: str) -> Any:
    """Return the span of the request of a trace, with its children and without what differs between two runs."""
    first = collector.wait_until(
        lambda span: span.kind == "SERVER" and trace_id in (span.trace_id, *span.linked)
    )
    return _node(first, [span for span in collector.spans if span.trace_id == first.trace_id])


def _node(span: CollectedSpan, all_spans: Sequence[CollectedSpan]) -> dict[str, Any]:
    children = sorted(
        (each for each in all_spans if each.parent_id == span.span_id), key=lambda each: each.start
    )
    node: dict[str, Any] = {"name": span.name, "scope": span.scope, "kind": span.kind}
    if span.linked:
        node["is linked"] = True
    if span.status != "UNSET":
        node["status"] = span.status
    node["attributes"] = normalised(span.attributes)
    node["events"] = [event.name for event in span.events]
    node["children"] = [_node(child, all_spans) for child in children]
    return node


_VOLATILE = re.compile(r"audit-id|UID|.*\.port|.*\.size|encoder|url\.scheme|user.agent.*")
_PORT = re.compile(r":\d+/")


def normalised(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with a mark for the values of those that differ between two runs."""
    return {
        name: "<any>"
        if _VOLATILE.fullmatch(name)
        else _PORT.sub(":0/", value)
        if isinstance(value, str)
        else value
        for name, value in sorted(attributes.items())
    }


def walk(node: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield node
    for child in node["children"]:
        yield from walk(child)
