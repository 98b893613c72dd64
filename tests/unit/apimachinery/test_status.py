import pytest

from mockube.apimachinery import errors, status
from mockube.apimachinery.groups import NO_RESOURCE, GroupKind, GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import Cause, Details

PODS = GroupResource("", "pods")
DEPLOYMENTS = GroupResource("apps", "deployments")
DEPLOYMENT = GroupKind("apps", "Deployment")
REPLICAS = errors.invalid(ROOT.child("spec", "replicas"), -1, "must be greater than or equal to 0")
SELECTOR = errors.required(ROOT.child("spec", "selector"))


def cause_of(error):
    return {"reason": error.type.reason, "message": error.body(), "field": error.field}


@pytest.mark.parametrize(
    ("error", "code", "reason", "message", "details"),
    [
        pytest.param(
            status.BadRequest("no such thing"), 400, "BadRequest", "no such thing", None, id="bad request"
        ),
        pytest.param(
            status.Unauthorized("Unauthorized"), 401, "Unauthorized", "Unauthorized", None, id="unauthorized"
        ),
        pytest.param(
            status.forbidden(DEPLOYMENTS, "web", "because"),
            403,
            "Forbidden",
            'deployments.apps "web" is forbidden: because',
            {"name": "web", "group": "apps", "kind": "deployments"},
            id="forbidden",
        ),
        pytest.param(
            status.forbidden(PODS, "", "because"),
            403,
            "Forbidden",
            "pods is forbidden: because",
            {"kind": "pods"},
            id="forbidden, no name",
        ),
        pytest.param(
            status.forbidden(NO_RESOURCE, "", "because"),
            403,
            "Forbidden",
            "forbidden: because",
            {},
            id="forbidden, no resource",
        ),
        pytest.param(
            status.forbidden(
                PODS,
                "a",
                "it ends",
                [Cause(reason="NamespaceTerminating", message="it ends", field="metadata.namespace")],
            ),
            403,
            "Forbidden",
            'pods "a" is forbidden: it ends',
            {
                "name": "a",
                "kind": "pods",
                "causes": [
                    {"reason": "NamespaceTerminating", "message": "it ends", "field": "metadata.namespace"}
                ],
            },
            id="forbidden, with a cause",
        ),
        pytest.param(
            status.not_found(PODS, "web"),
            404,
            "NotFound",
            'pods "web" not found',
            {"name": "web", "kind": "pods"},
            id="not found",
        ),
        pytest.param(
            status.already_exists(PODS, "web"),
            409,
            "AlreadyExists",
            'pods "web" already exists',
            {"name": "web", "kind": "pods"},
            id="already exists",
        ),
        pytest.param(
            status.generate_name_conflict(PODS, "web-b2c4d", 1),
            409,
            "AlreadyExists",
            'pods "web-b2c4d" already exists, the server was not able to generate a unique name for the object',
            {"name": "web-b2c4d", "kind": "pods", "retryAfterSeconds": 1},
            id="generated name exists",
        ),
        pytest.param(
            status.conflict(DEPLOYMENTS, "web", "the object has been modified"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on deployments.apps "web": the object has been modified',
            {"name": "web", "group": "apps", "kind": "deployments"},
            id="conflict",
        ),
        pytest.param(status.Gone("long gone"), 410, "Gone", "long gone", None, id="gone"),
        pytest.param(status.Expired("too old"), 410, "Expired", "too old", None, id="expired"),
        pytest.param(
            status.request_entity_too_large("limit is 3145728"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
            None,
            id="too large",
        ),
        pytest.param(
            status.unsupported_media_type(["application/json"]),
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json",
            None,
            id="unsupported media type",
        ),
        pytest.param(
            status.invalid(DEPLOYMENT, "web", [REPLICAS]),
            422,
            "Invalid",
            'Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
            {"name": "web", "group": "apps", "kind": "Deployment", "causes": [cause_of(REPLICAS)]},
            id="invalid",
        ),
        pytest.param(
            status.invalid(DEPLOYMENT, "", [SELECTOR, REPLICAS, SELECTOR]),
            422,
            "Invalid",
            f'Deployment.apps "" is invalid: [spec.selector: Required value, {REPLICAS}]',
            {
                "group": "apps",
                "kind": "Deployment",
                "causes": [cause_of(SELECTOR), cause_of(REPLICAS), cause_of(SELECTOR)],
            },
            id="invalid, several",
        ),
        pytest.param(
            status.invalid(DEPLOYMENT, "web", []),
            422,
            "Invalid",
            'Deployment.apps "web" is invalid',
            {"name": "web", "group": "apps", "kind": "Deployment"},
            id="invalid, no errors",
        ),
        pytest.param(
            status.too_many_requests("storage is (re)initializing", 1),
            429,
            "TooManyRequests",
            "storage is (re)initializing",
            {"retryAfterSeconds": 1},
            id="too many requests",
        ),
        pytest.param(
            status.internal_error("broken"),
            500,
            "InternalError",
            "Internal error occurred: broken",
            {"causes": [{"message": "broken"}]},
            id="internal",
        ),
        pytest.param(
            status.ServiceUnavailable("not yet"), 503, "ServiceUnavailable", "not yet", None, id="unavailable"
        ),
        pytest.param(
            status.timeout("too slow", 1, [Cause(reason="ResourceVersionTooLarge", message="too new")]),
            504,
            "Timeout",
            "Timeout: too slow",
            {"causes": [{"reason": "ResourceVersionTooLarge", "message": "too new"}], "retryAfterSeconds": 1},
            id="timeout",
        ),
    ],
)
def test_status_of_error(error, code, reason, message, details):
    tree = error.status()
    assert tree == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    } | ({} if details is None else {"details": details})
    assert str(error) == message


def test_status_fields_have_kubernetes_order():
    tree = status.generate_name_conflict(DEPLOYMENTS, "web", 1).status()
    assert list(tree) == [
        "kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code",
    ]  # fmt: skip
    assert list(tree["details"]) == ["name", "group", "kind", "retryAfterSeconds"]


def test_unknown_error_has_no_reason():
    assert status.Unknown("strange").status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "strange",
        "code": 500,
    }


CLASSES = [cls for cls in status.ApiError.__subclasses__() if cls.__module__ == status.__name__]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_class_is_found_by_reason(cls):
    sent = cls("told", Details(name="a", causes=(Cause(message="why"),), retry_after_seconds=3))
    read = status.from_tree(sent.status(), sent.code)
    assert type(read) is cls
    assert read.status() == sent.status()


@pytest.mark.parametrize(
    ("tree", "code", "cls"),
    [
        pytest.param({"reason": "Expired"}, 410, status.Expired, id="reason overrides the code"),
        pytest.param({"reason": "Expired"}, 400, status.Expired, id="whatever the code"),
        pytest.param({"reason": "OfTomorrow"}, 404, status.NotFound, id="unknown reason"),
        pytest.param({}, 409, status.Conflict, id="no reason"),
        pytest.param({}, 410, status.Gone, id="gone rather than expired"),
        pytest.param({}, 500, status.Unknown, id="no reason, internal"),
        pytest.param({}, 418, status.Unknown, id="unknown code"),
    ],
)
def test_from_tree_finds_class_by_code(tree, code, cls):
    read = status.from_tree(tree, code)
    assert type(read) is cls
    assert (read.code, read.message, read.details) == (code, "", None)


def test_success_status():
    assert status.success(Details(name="web", group="apps", kind="deployments", uid="1")) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "web", "group": "apps", "kind": "deployments", "uid": "1"},
    }
    assert status.success(code=201) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }


@pytest.mark.parametrize(
    ("error", "cls", "message"),
    [
        pytest.param(
            status.generic(404),
            status.NotFound,
            "the server could not find the requested resource",
            id="plain",
        ),
        pytest.param(
            status.generic(404, verb="GET", resource=PODS, name="web"),
            status.NotFound,
            "the server could not find the requested resource (get pods web)",
            id="with resource and name",
        ),
        pytest.param(
            status.generic(429, verb="LIST", resource=DEPLOYMENTS),
            status.TooManyRequests,
            "the server has received too many requests and has asked us to try again later (list deployments.apps)",
            id="with resource",
        ),
        pytest.param(
            status.generic(409, verb="POST"),
            status.AlreadyExists,
            "the server reported a conflict",
            id="conflict of a creation",
        ),
        pytest.param(
            status.generic(409, verb="PUT"),
            status.Conflict,
            "the server reported a conflict",
            id="conflict of a change",
        ),
        pytest.param(
            status.generic(415, server_message="415: Unsupported {Media} Type"),
            status.UnsupportedMediaType,
            "415: Unsupported {Media} Type",
            id="message of the server",
        ),
        pytest.param(
            status.generic(406),
            status.NotAcceptable,
            "the server was unable to respond with a content type that the client supports",
            id="not acceptable, no message",
        ),
        pytest.param(
            status.generic(406, server_message="406: Not {Acceptable}"),
            status.NotAcceptable,
            "406: Not {Acceptable}",
            id="not acceptable, with a message",
        ),
        pytest.param(
            status.generic(502, server_message='bad "gateway"'),
            status.InternalError,
            'an error on the server ("bad \\"gateway\\"") has prevented the request from succeeding',
            id="another server error",
        ),
        pytest.param(
            status.generic(418),
            status.Unknown,
            "the server responded with the status code 418 but did not return more information",
            id="anything else",
        ),
    ],
)
def test_generic_server_response(error, cls, message):
    assert type(error) is cls
    assert error.message == message


def test_generic_keeps_the_code_and_always_has_details():
    assert status.generic(502).code == 502
    assert status.generic(404).status()["details"] == {}
