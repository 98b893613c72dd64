"""Values of Secrets do not get into a report."""

import base64

import pytest

from mockube.apimachinery.secrets import MASK
from mockube.report.collection import without_secrets
from mockube.report.recording import ContainerLog, Subject
from tests.support.reports import changes_to, explanation, recording, request, tree_of

VALUE = "hunter2-very-secret"
ENCODED = base64.b64encode(VALUE.encode()).decode()
BINARY = base64.b64encode(b"\xff\xfe\xfd\xfc\xfb\xfa").decode()
SECRET = {**tree_of("Secret", "db"), "data": {"password": ENCODED, "short": "YQ==", "binary": BINARY}}


def cleaned(**parts):
    return without_secrets(recording(objects={"secrets": [SECRET]}, **parts))


def test_secrets_have_names_of_values_only():
    applied = {"kubectl.kubernetes.io/last-applied-configuration": VALUE}
    secret = {**SECRET, "metadata": {**SECRET["metadata"], "annotations": applied}}
    shown = without_secrets(recording(objects={"secrets": [secret]})).objects["secrets"][0]
    assert shown["data"] == dict.fromkeys(SECRET["data"], MASK)
    assert VALUE not in str(shown)


def test_logs_and_texts_quote_no_value():
    pod = tree_of("Pod", "web")
    lines = [f"password={VALUE}", ENCODED, f"key {BINARY}", "a"]
    log = ContainerLog(namespace="default", pod="web", container="web", lines=lines)
    event = {"metadata": {"name": "e"}, "message": f"cannot log in with {VALUE}", "reason": "Failed"}
    found = cleaned(
        logs=[log],
        events=[event],
        requests=[request("1", 403, message=f"denied {VALUE}")],
        explanations=[explanation(pod, f"it printed {VALUE}", evidence=[{"text": f"log: {VALUE}"}])],
        refusals={"1": {"state": "Explained", "cause": VALUE}},
    )
    assert VALUE not in str(found)
    assert ENCODED not in str(found)
    assert found.logs[0].lines == [f"password={MASK}", MASK, f"key {MASK}", "a"]
    assert found.explanations[0]["object"]["name"] == "web"


def test_each_line_of_a_value_is_masked():
    lines = "first-line-of-it\nsecond-line-of-it\n"
    secret = {**tree_of("Secret", "a"), "data": {"a": base64.b64encode(lines.encode()).decode()}}
    log = ContainerLog(namespace="default", pod="a", container="a", lines=["x second-line-of-it y"])
    assert without_secrets(recording(objects={"secrets": [secret]}, logs=[log])).logs[0].lines == [
        f"x {MASK} y"
    ]


def test_names_of_objects_stay_even_if_a_value_is_the_same():
    pod = tree_of("Pod", VALUE)
    found = cleaned(explanations=[explanation(pod, "a cause")])
    assert found.explanations[0]["object"]["name"] == VALUE


def test_objects_changes_and_the_subject_quote_no_value():
    failed = {"conditions": [{"type": "Ready", "message": f"cannot log in with {VALUE}"}]}
    pod = tree_of("Pod", "web", status=failed)
    remedies = [{"text": "set it", "command": f"kubectl create secret --from-literal=p={VALUE}"}]
    log = ContainerLog(namespace="default", pod="web", container="web", problem=f"no {VALUE}")
    found = without_secrets(
        recording(
            objects={"secrets": [SECRET], "pods": [pod]},
            changes=changes_to("Pod", "web", tree_of("Pod", "web"), pod),
            explanations=[explanation(pod, "a cause", remedies=remedies)],
            faults=[{"metadata": {"name": "slow"}, "spec": {"message": VALUE}}],
            refused={"pods": f"no {ENCODED}"},
            logs=[log],
            subject=Subject(title=f"kubectl create secret generic db --from-literal=p={VALUE}", text=VALUE),
        )
    )
    assert VALUE not in str(found)
    assert ENCODED not in str(found)
    assert found.changes[0]["object"]["name"] == "web"


def masked_log(line, *objects, **values):
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    secret = {**tree_of("Secret", "db"), "data": data}
    log = ContainerLog(namespace="default", pod="a", container="a", lines=[line])
    parts = {"objects": {"secrets": [secret], "services": [*objects]}, "logs": [log]}
    return without_secrets(recording(**parts)).logs[0].lines[0]


def test_names_of_namespaces_and_objects_are_no_secret_values():
    line = "postgres in default of production"
    service = tree_of("Service", "postgres")
    assert masked_log(line, service, namespace="production", user="postgres", other="default") == line


def test_frames_of_certificates_stay():
    certificate = "-----BEGIN CERTIFICATE-----\nMIIBabcdef\n-----END CERTIFICATE-----\n"
    assert masked_log("-----BEGIN CERTIFICATE-----", tls=certificate) == "-----BEGIN CERTIFICATE-----"
    assert masked_log("a MIIBabcdef", tls=certificate) == f"a {MASK}"


def test_values_with_characters_that_json_escapes_are_masked():
    pod = tree_of("Pod", "web", note='is pa"ss\\word here')
    data = {"p": base64.b64encode(b'pa"ss\\word').decode()}
    secret = {**tree_of("Secret", "db"), "data": data}
    found = without_secrets(recording(objects={"secrets": [secret], "pods": [pod]}))
    assert found.objects["pods"][0]["spec"]["note"] == f"is {MASK} here"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"dsn":"db?a=1\\u0026b=\\"2\\""}', id="JSON of Go"),
        pytest.param('{"dsn":"db?a=1&b=\\"2\\""}', id="JSON"),
        pytest.param('{"f":"{\\"dsn\\":\\"db?a=1\\\\u0026b=\\\\\\"2\\\\\\"\\"}"}', id="JSON in JSON of Go"),
    ],
)
def test_values_within_json_are_masked(text):
    value = 'db?a=1&b="2"'
    pod = tree_of("Pod", "web")
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": text}
    secret = {**tree_of("Secret", "db"), "data": {"dsn": base64.b64encode(value.encode()).decode()}}
    found = without_secrets(recording(objects={"secrets": [secret], "pods": [pod]}))
    (shown,) = found.objects["pods"][0]["metadata"]["annotations"].values()
    assert MASK in shown
    assert "db?a" not in shown
    assert masked_log(text, dsn=value) == shown
