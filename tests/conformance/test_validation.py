"""Validation of created objects refuses what a real server refused, with the same messages, and nothing else.

Each kind's recordings are one test, which reports how many responses were equal. A false refusal is the worst result:
an object that a real server accepts.
"""

import re
from collections import Counter, defaultdict
from enum import Enum

import orjson
import pytest

from mockube.apimachinery import status
from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds import kind_rules as validations
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.core.service.strategy import needs_health_check_node_port
from mockube.apiserver.kinds.kind_rules import Defaulter, KindRules
from mockube.apiserver.kinds.strategy import DEFAULT, StrategyContext
from mockube.apiserver.schema.decode import Decoder
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.recorded import recordings
from tests.support.server.rows import catalog

SCHEMAS = builtin.load()
DECODER = Decoder()
RULES = KindRules(Defaulter(SCHEMAS, clock=SteppedClock()))
REQUEST = StrategyContext(user=User(name="somebody"), now=SteppedClock().now(), warn=[].append)
RESOURCES = {(row.api_version, row.name): row for row in catalog().values()}

COLLECTION = re.compile(
    r"/(?:api|apis)/(?P<version>v1|[^/]+/v[^/]+)(?:/namespaces/[^/]+)?/(?P<name>[a-z]+)(?:\?.*)?"
)

CREATED, INVALID = 201, 422


class ValidationOutcome(Enum):
    SAME = "the same"
    WORDING = "apart in wording only"
    WRONG = "wrong"
    FALSE_ALARM = "false alarms"


def creations():
    """Yield each recorded request to create an object of a built-in kind that was not refused for its form, by kind.

    A kind without rules is skipped.
    """
    found = defaultdict(list)
    for parameter in recordings.cases():
        case = parameter.values[0]
        for request, response in recordings.steps(case):
            resource = resource_of(request)
            if resource is not None and is_validated(resource, response):
                found[resource].append((case["id"], request, response))
    return [pytest.param(resource, given, id=resource.name) for resource, given in found.items()]


def is_validated(resource, response):
    """Whether an object was created, or refused by validation: some requests have invalid options."""
    body = response["body"]
    return response["status"] == CREATED or (
        response["status"] == INVALID and body["details"]["kind"] == resource.kind
    )


def resource_of(request):
    match = COLLECTION.fullmatch(request["path"])
    resource = RESOURCES.get((match["version"], match["name"])) if match else None
    has_rules = resource is not None and resource.group_kind in validations.NEWEST.validations
    return resource if has_rules and request["method"] == "POST" else None


def validation_result(resource, request):
    """Return the validation errors of a body, after the steps that precede validation."""
    body = request["body"] if request.get("body") is not None else orjson.loads(request["raw"])
    sent = {"apiVersion": resource.api_version, "kind": resource.kind} | in_namespace(body)
    row, tree = as_storage_version(resource, decoded(sent))
    prepare_object(row, tree)
    created = RULES.check_create(resource, tree)
    return status.invalid(row.group_kind, tree["metadata"].get("name", ""), created) if created else None


def decoded(sent):
    version, kind = sent["apiVersion"], sent["kind"]
    tree = {"apiVersion": version, "kind": kind} | DECODER.decode(SCHEMAS.kind(version, kind), sent).tree
    RULES.default(version, kind, tree)
    return tree


def as_storage_version(resource, tree):
    """Convert to the version in which objects are stored."""
    conversion = NEWEST.conversions.get((resource.group_version, resource.name))
    if conversion is None:
        return resource, tree
    group, version = resource.storage_version
    row = RESOURCES[f"{group}/{version}" if group else version, resource.name]
    return row, decoded(conversion.to_stored(tree))


def in_namespace(value):
    """Return a recording with a namespace's name in place of its variable."""
    return orjson.loads(orjson.dumps(value).replace(b"${ns}", b"ns").replace(b"<ns>", b"ns"))


def prepare_object(resource, tree):
    """Prepare a new object for validation, as far as the rules need it."""
    metadata = tree["metadata"]
    metadata["uid"] = "00000000-0000-4000-8000-000000000000"
    if resource.namespaced:
        metadata["namespace"] = "ns"
    if "generateName" in metadata:
        metadata.setdefault("name", f"{metadata['generateName']}bcdfg")
    if resource.name in ADMITTED:
        ADMITTED[resource.name](tree)
    NEWEST.strategies.get(resource.group_resource, DEFAULT).prepare_create(tree, REQUEST)


def with_service_account(pod):
    pod["spec"].setdefault("serviceAccountName", "default")


def with_health_check(service):
    if needs_health_check_node_port(service["spec"]):
        service["spec"].setdefault("healthCheckNodePort", 30000)


ADMITTED = {"pods": with_service_account, "services": with_health_check}
"""By resource, fields set by admission and allocation that validation needs."""


def judge(refusal, answer):
    """Return our result of a creation, beside the real server's response."""
    refused = answer["status"] == "Failure" if answer["kind"] == "Status" else False
    if refusal is None or not refused:
        return (
            ValidationOutcome.FALSE_ALARM
            if refusal
            else ValidationOutcome.WRONG
            if refused
            else ValidationOutcome.SAME
        )
    ours = refusal.status()
    if ours == answer or without_empty_values(ours) == without_empty_values(answer):
        return ValidationOutcome.SAME
    return ValidationOutcome.WORDING if causes_of(ours) == causes_of(answer) else ValidationOutcome.WRONG


def without_empty_values(answer):
    """Empty maps and lists are not kept, so one that a client sent is shown as nothing."""
    return re.sub(r"(value: )(?:\{\}|\[\])(?=: )", r"\1null", orjson.dumps(answer).decode())


def causes_of(answer):
    return [(cause["field"], cause["reason"]) for cause in answer["details"]["causes"]]


@pytest.mark.parametrize(("resource", "given"), creations())
def test_validation_errors_match_recording(resource, given):
    counts, apart = Counter(), []
    for name, request, response in given:
        refusal, answer = validation_result(resource, request), in_namespace(response["body"])
        outcome = judge(refusal, answer)
        counts[outcome] += 1
        if outcome is not ValidationOutcome.SAME:
            said = answer.get("message", "it was created")
            apart.append(f"{name}: {outcome.value}:\n  {refusal}\n  {said}")
    summary = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in ValidationOutcome)
    assert not apart, "\n".join([f"{resource.name}: {summary}", *apart])
