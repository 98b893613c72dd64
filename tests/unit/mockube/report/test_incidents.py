"""Reports of generated incidents: what users wrote and what follows from it is in a text of limited size, whatever else happened."""

import orjson
import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.report.recording import ContainerLog
from mockube.report.summary import MAX_TEXT
from mockube.report.writing import WRITERS
from tests.support.reports import ADMIN, CONTROLLER, changes_to, explanation, recording, tree_of

pytestmark = pytest.mark.thorough

USERS = ("ada", "bob", "carol")
FIELDS = ("spec.replicas", "data.token", "metadata.labels.app", "spec.template.spec.containers[web].image")
PLANTED = 20


class Random:
    """Numbers and choices that a seed determines."""

    def __init__(self, seed):
        self._source = SeededRandom(seed)

    def number(self, limit):
        return int.from_bytes(self._source.bytes(4)) % limit

    def choice(self, values):
        return values[self.number(len(values))]


def planted(random, number):
    """Return a write by which a user broke a workload, the explanations of what is broken, and the changes."""
    user, field = random.choice(USERS), random.choice(FIELDS)
    name, suffix = f"planted-{number}", "x" * random.choice((0, 40))
    before, after = tree_of("Secret", name), tree_of("Secret", name, key=number)
    type_ = random.choice(("MODIFIED", "MODIFIED", "DELETED"))
    changes = changes_to(
        "Secret",
        name,
        before,
        after if type_ == "MODIFIED" else None,
        first=random.number(1_000),
        users=[ADMIN, user],
    )
    write = {"revision": changes[-1]["revision"], "type": type_, "user": user, "program": "kubectl-patch"}
    by_program = {"revision": 2_000 + number, "type": "MODIFIED", "user": CONTROLLER, "after": '"1"'}
    origin = {
        "object": {"kind": "Secret", "apiVersion": "v1", "namespace": "default", "name": name},
        "field": field,
        "writes": [by_program, write] if random.number(3) == 0 else [write],
        "command": f"mockube log secret/{name} --field {field}",
    }
    owner = tree_of("Deployment", f"web-{number}{suffix}")
    others = [
        tree_of("Pod", f"web-{number}-{n}", owner=owner["metadata"]["uid"]) for n in range(random.number(4))
    ]
    cause = f"needs the field {field} of {name}, {'which it lacks ' * random.number(40)}"
    evidence = [{"text": "e" * random.number(800)}] * random.number(8)
    explained = [
        explanation(tree, cause, origins=[origin], evidence=evidence, remedies=evidence)
        for tree in (owner, *others)
    ]
    return (name, user), explained, changes, [owner, *others]


def noise(random):
    """Return bare pods that ended for want of memory, and statuses that programs wrote."""
    pods = [tree_of("Pod", f"bare-{n}") for n in range(10 + random.number(70))]
    explained = [
        explanation(
            pod,
            "was killed because it used more memory than its limit (OOMKilled)",
            evidence=[{"text": "ended with exit code 137"}] * 9,
        )
        for pod in pods
    ]
    changes = [
        change
        for n, pod in enumerate(pods)
        for change in changes_to(
            "Pod",
            pod["metadata"]["name"],
            *(pod | {"status": {f"field{m}": "s" * 300 for m in range(k)}} for k in range(4)),
            first=2_100 + 10 * n,
            users=[f"system:node:node-{n % 5}"] * 4,
        )
    ]
    logs = [
        ContainerLog(namespace="default", pod=pod["metadata"]["name"], container="a", lines=["l" * 200] * 40)
        for pod in pods
    ]
    return pods, explained, changes, logs


def incident(seed):
    random = Random(seed)
    parts = [planted(random, number) for number in range(PLANTED)]
    pods, explained, changes, logs = noise(random)
    explained += [each for _, some, _, _ in parts for each in some]
    changes += [each for _, _, some, _ in parts for each in some]
    trees = [*pods, *(tree for _, _, _, some in parts for tree in some)]
    explained.sort(key=lambda _: random.number(1_000))
    objects = {
        name: [tree for tree in trees if tree["kind"] == kind]
        for name, kind in (("pods", "Pod"), ("deployments.apps", "Deployment"))
    }
    found = recording(
        objects=objects,
        changes=sorted(changes, key=lambda change: change["revision"]),
        explanations=explained,
        logs=logs,
    )
    return [write for write, _, _, _ in parts], found


@pytest.mark.parametrize("seed", range(6))
def test_every_planted_write_has_its_object_and_author_in_each_text(seed):
    writes, found = incident(seed)
    markdown, text = WRITERS[".md"](found), WRITERS[".json"](found)
    assert max(len(markdown.encode()), len(text.encode())) <= MAX_TEXT
    summary = orjson.loads(text)
    in_json = {
        (origin["object"]["name"], write["user"])
        for problem in summary["problems"]
        for origin in problem.get("origins", ())
        for write in origin["writes"]
    }
    lines = markdown.splitlines()
    for name, user in writes:
        assert (name, user) in in_json
        assert any(f"`secret/{name}`" in line and f"`{user} (kubectl-patch)`" in line for line in lines)


@pytest.mark.parametrize("seed", range(6))
def test_causes_of_users_come_before_those_of_programs(seed):
    _, found = incident(seed)
    problems = orjson.loads(WRITERS[".json"](found))["problems"]
    assert [each["object"]["name"].partition("-")[0] for each in problems[:PLANTED]] == ["web"] * PLANTED
    assert len(problems) >= PLANTED


@pytest.mark.parametrize("suffix", [".md", ".json"])
def test_of_more_causes_of_users_than_have_room_the_first_are_whole_and_the_others_counted(suffix):
    random = Random(7)
    parts = [planted(random, number) for number in range(150)]
    found = recording(
        changes=sorted((each for _, _, some, _ in parts for each in some), key=lambda each: each["revision"]),
        explanations=[each for _, some, _, _ in parts for each in some],
    )
    text = WRITERS[suffix](found)
    assert MAX_TEXT * 0.9 < len(text.encode()) <= MAX_TEXT
    count = sum(f"needs the field {field} of planted-{n}," in text for n in range(150) for field in FIELDS)
    assert 20 < count < 150
    assert f"{150 - count} more causes that users wrote are left out: `mockube" in text.replace("'", "`")


def test_status_that_a_program_wrote_is_left_out_before_the_evidence_of_a_cause():
    _, found = incident(0)
    lines = WRITERS[".md"](found).splitlines()
    assert not any("status.field" in line for line in lines)
