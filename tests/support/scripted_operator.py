"""A trial of a judgement without processes and without waiting: a function of the test is the operator, at each look."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import NotFound
from mockube.apiserver.control.recorder import RecordedCall
from mockube.component_base.clock import SteppedClock
from mockube.judging.context import Context
from mockube.judging.inputs import Account, Release, Sample
from mockube.judging.trial_cluster import Setup, TrialCluster
from mockube.lint.renderers import ChartOptions
from mockube.operators.process import OperatorEnd

GROUP = "example.com"
DEFINITION: Any = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"websites.{GROUP}"},
    "spec": {"group": GROUP, "names": {"plural": "websites", "kind": "Website"}, "scope": "Namespaced"},
}
WEBSITE: Any = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Website",
    "metadata": {"name": "blog", "namespace": "default"},
}


class ScriptedInstance:
    """An instance that ends when the test says so."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.is_stopped = False
        self.restarts = 0

    def kill(self) -> OperatorEnd:
        return self.stop()

    def stop(self, grace: float = 5.0) -> OperatorEnd:
        del grace
        self.is_stopped, self.code = True, self.code or 0
        return OperatorEnd(code=self.code)

    def restart(self) -> None:
        self.is_stopped, self.code = False, None
        self.restarts += 1

    def last_lines(self) -> str:
        return "the last line"

    def memory(self) -> int | None:
        return None


class ScriptedCluster:
    """A cluster that has the objects which a test gives it, and the requests which its operator records."""

    def __init__(self, clock: SteppedClock) -> None:
        self.clock = clock
        self.requests: list[RecordedCall] = []
        self.objects: dict[tuple[str, str], Any] = {}
        self.made: list[Any] = []
        """The Changes, with their users."""

    def record(self, user: str, verb: str, resource: str, **fields: Any) -> None:
        """Record a request, which arrives now."""
        self.clock.advance(0.001)
        values: Any = {
            "at": self.clock.now(),
            "user": user,
            "agent": "",
            "verb": verb,
            "group": "",
            "version": "v1",
            "resource": resource,
            "subresource": "",
            "namespace": "default",
            "name": "a",
            "uri": "/",
            "code": 200,
            "seconds": 0.0,
        }
        self.requests.append(RecordedCall(**{**values, **fields}))

    def calls(self, *, user: str = "*", verb: Any = None, resource: str | None = None) -> list[RecordedCall]:
        return [
            each
            for each in self.requests
            if user.rstrip("*") in each.user
            and (verb is None or each.verb in verb)
            and (resource is None or each.resource == resource)
        ]

    def changes(self, user: str) -> list[Any]:
        return [each for each in self.made if each["user"] == user]

    def make(self, user: str, tree: Any) -> None:
        """Let a user create an object."""
        self._note_change(user, "ADDED", tree)
        self.objects[tree["kind"], tree["metadata"]["name"]] = tree

    def change(self, user: str, tree: Any, path: str) -> None:
        """Let a user write a field of an object, which stays as it is here."""
        self._note_change(user, "MODIFIED", tree, patch=[{"op": "replace", "path": path}])

    def _note_change(self, user: str, change_type: str, tree: Any, **fields: Any) -> None:
        name = {"name": tree["metadata"]["name"], "namespace": tree["metadata"].get("namespace", "")}
        about = {"apiVersion": tree["apiVersion"], "kind": tree["kind"], **name}
        spec = {"revision": len(self.made) + 1, "type": change_type, "object": about, **fields}
        self.made.append({"user": user, "spec": spec})

    def get(self, target: Any, name: str = "", **_: Any) -> Any:
        key = (_kind(target), name) if name else (target["kind"], target["metadata"]["name"])
        if key not in self.objects:
            raise NotFound(f"{key} not found")
        return self.objects[key]

    def create(self, tree: Any, **_: Any) -> Any:
        self.objects[tree["kind"], tree["metadata"]["name"]] = tree
        return [tree]

    def apply(self, tree: Any, **_: Any) -> None:
        del tree

    def patch(self, kind: str, name: str, patch: Any, **_: Any) -> None:
        """Change the spec: by a merge patch, or by a JSON patch that replaces it."""
        tree = self.objects[_kind(kind), name]
        spec = patch[0]["value"] if isinstance(patch, list) else {**tree["spec"], **patch["spec"]}
        self.objects[_kind(kind), name] = {**tree, "spec": spec}

    def list(self, kind: str, **_: Any) -> Any:
        return [tree for (of_kind, _), tree in self.objects.items() if of_kind == kind]

    def delete(self, kind: str, name: str, **_: Any) -> None:
        self.objects.pop((_kind(kind), name), None)


def _kind(name: str) -> str:
    return WEBSITE["kind"] if name == DEFINITION["metadata"]["name"] else name


class ScriptedTrial(TrialCluster):
    """A trial whose time passes at once. `operator` is called at each look."""

    operator: Callable[["ScriptedTrial"], None] = staticmethod(lambda _: None)

    @property
    def script(self) -> ScriptedCluster:
        return cast("ScriptedCluster", self.cluster)

    def pause(self, seconds: float | None = None) -> None:
        cast("SteppedClock", self.setup.clock).advance(self.poll_seconds if seconds is None else seconds)
        self.operator(self)
        self.look_after()

    def start(self, account: Account | None = None) -> ScriptedInstance:
        del account
        instance = ScriptedInstance()
        self._note(instance)
        return instance


def scripted_trial(folder: Path, operator: Callable[[ScriptedTrial], None] = lambda _: None) -> ScriptedTrial:
    chart = ChartOptions(release="mine", namespace="default", flags=[])
    release = Release(names=["deploy.yaml"], objects={minors.NEWEST: []}, command=["true"], chart=chart)
    sample = Sample(resource=WEBSITE, others=[], definition=DEFINITION, names=["sample.yaml"])
    clock = SteppedClock()
    setup = Setup(release=release, sample=sample, namespace="default", clock=clock)
    trial = ScriptedTrial(setup, cast("Any", ScriptedCluster(clock)), release, minors.NEWEST, folder)
    trial.operator = operator
    return trial


class ScriptedContext(Context, kw_only=True):
    """The context of judgements whose trials are those of a test, one after another."""

    trials: list[ScriptedTrial]

    @contextmanager
    def trial(self, **_: Any) -> Iterator[TrialCluster]:
        yield self.trials.pop(0)
