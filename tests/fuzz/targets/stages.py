"""kwok's Stages: their documents, the files that contain them, and their templates."""

from datetime import UTC, datetime

from mockube.apimachinery.randomness import SeededRandom
from mockube.kubelet.stages import document, files, matching, playing
from mockube.kubelet.stages import matching as choice
from mockube.kubelet.stages.query import StageError
from mockube.kubelet.template import parser
from tests.fuzz import texts
from tests.fuzz.engine import Target
from tests.fuzz.targets.files import POD, as_yaml, file, mutated_file
from tests.fuzz.values import object_of
from tests.support.hostile import hostile_bodies

NOW = datetime(2030, 1, 1, tzinfo=UTC)

STAGE = {
    "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": "s"},
    "spec": {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {
            "matchLabels": {"app": "a"}, "matchAnnotations": {"a": "b"},
            "matchExpressions": [{"key": ".status.phase", "operator": "In", "values": ["Running"]}, {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}],
        },
        "weight": 1, "weightFrom": {"expressionFrom": ".metadata.annotations.w"},
        "delay": {
            "durationMilliseconds": 1000, "jitterDurationMilliseconds": 2000, "durationFrom": {"expressionFrom": ".metadata.annotations.d"},
            "jitterDurationFrom": {"expressionFrom": ".metadata.deletionTimestamp"},
        },
        "next": {
            "event": {"type": "Normal", "reason": "R", "message": "m {{ .metadata.name }}"},
            "finalizers": {"add": [{"value": "a"}], "remove": [{"value": "b"}], "empty": False}, "delete": False,
            "statusTemplate": "phase: Running\nstartTime: {{ Now }}\nconditions:\n{{ range .spec.containers }}\n- type: {{ .name | Quote }}\n{{ end }}\n",
            "patches": [{"subresource": "status", "root": "status", "type": "merge", "template": "phase: {{ .status.phase }}"}],
        },
    },
}  # fmt: skip
ENVIRONMENT = {
    "Now": lambda: "2030-01-01T00:00:00Z", "StartTime": lambda: "2030-01-01T00:00:00Z", "Version": lambda: "v", "NodeConditions": list, "NodeName": lambda: "n",
    "NodeIPWith": lambda *_: "10.0.0.1", "PodIPWith": lambda *_: "10.0.0.2", "NodeIP": lambda: "10.0.0.1", "NodePort": lambda: 10250,
}  # fmt: skip


def _make_stage(random):
    stage = STAGE if random.random() < 0.3 else hostile_bodies.mutated(STAGE, random)
    pod = POD if random.random() < 0.5 else object_of(random, "v1", "Pod")
    if random.random() < 0.5:
        pod = pod | {
            "metadata": {
                "name": "a",
                "labels": {"app": "a"},
                "annotations": {
                    "a": "b",
                    "w": texts.join_tokens(random, texts.QUANTITIES),
                    "d": texts.join_tokens(random, texts.DURATIONS),
                },
                "deletionTimestamp": "2030-01-01T00:00:00Z",
            }
        }
    return {"stage": stage, "pod": pod}


def _mutate_stage(case, random):
    field = random.choice(("stage", "stage", "pod"))
    return case | {field: hostile_bodies.mutated(case[field], random)}


def _stage(case):
    if not {"stage", "pod"} <= case.keys():
        return "no case"
    try:
        stage = document.stage_of(case["stage"])
    except StageError as error:
        return f"refused: {error}"
    pod = case["pod"]
    if stage is None or not isinstance(pod, dict) or not _is_object(pod):
        return "none"
    try:
        matching.matches_stage(stage, pod)
        choice.choose_stage([stage], pod, SeededRandom())
        choice.delay_of(stage, pod, NOW, SeededRandom())
        return f"played: {len(playing.stage_effects(stage, pod, ENVIRONMENT))}"
    except (StageError, parser.TemplateError) as error:
        return f"not played: {error}"


def _is_object(tree):
    """A server returns nothing but objects."""
    metadata = tree.get("metadata")
    maps = ("labels", "annotations")
    return isinstance(metadata, dict) and all(
        isinstance(metadata.get(name, {}), dict) and all(isinstance(value, str) for value in metadata.get(name, {}).values()) for name in maps
    ) and isinstance(metadata.get("finalizers", []), list)  # fmt: skip


def _make_stage_file(random):
    return as_yaml(hostile_bodies.mutated({"kind": "List", "items": [STAGE]}, random), random)


def _stages_file(text):
    path = file("stages", text.encode("latin-1"))
    try:
        return f"read: {len(files.load_stages([path]))}"
    except StageError as error:
        return f"refused: {str(error).replace(str(path), '')}"


def _template(text):
    try:
        template = parser.parse(text)
    except parser.TemplateError as error:
        return f"refused: {error}"
    try:
        return f"rendered: {len(template.render(POD, ENVIRONMENT)) > 0}"
    except parser.TemplateError as error:
        return f"not rendered: {error}"


def _make_template(random):
    if random.random() < 0.3:
        return texts.join_tokens(random, texts.TEMPLATES, maximum=16)
    actions = [
        "{{ " + texts.join_tokens(random, texts.TEMPLATES[4:], maximum=5) + " }}"
        for _ in range(random.choice((1, 2, 4)))
    ]
    return "a: ".join(actions) + "{{ end }}" * random.choice((0, 0, 1, 2))


TARGETS = (
    Target(name="stages", generate=_make_stage, check=_stage, mutate=_mutate_stage, examples=200),
    Target(
        name="stage-files", generate=_make_stage_file, check=_stages_file, mutate=mutated_file, examples=100
    ),
    Target(name="templates", generate=_make_template, check=_template, mutate=texts.mutated),
)
