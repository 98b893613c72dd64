"""Values of Secrets do not get into a report."""

import base64

from mockube.apimachinery.secrets import MASK
from mockube.report.collection import without_secrets
from mockube.report.recording import ContainerLog
from tests.support.reports import explanation, recording, request, tree_of

VALUE = "hunter2-very-secret"
ENCODED = base64.b64encode(VALUE.encode()).decode()
SECRET = {**tree_of("Secret", "db"), "data": {"password": ENCODED, "short": "YQ==", "binary": "//79"}}


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
    log = ContainerLog(
        namespace="default", pod="web", container="web", lines=[f"password={VALUE}", ENCODED, "a"]
    )
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
    assert found.logs[0].lines == [f"password={MASK}", MASK, "a"]
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
