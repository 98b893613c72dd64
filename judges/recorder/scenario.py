"""A scenario file: YAML with the requests, or the commands of kubectl, of each case."""

from dataclasses import dataclass
from pathlib import Path

import yaml

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True)
class Scenario:
    records: str
    """The recording's file without its extension: `api/answers`."""
    cases: list[dict]
    with_controllers: bool = False
    """Whether controllers run as well."""
    with_scheduler: bool = True
    """Whether the scheduler runs where controllers do; a case without it acts as scheduler and kubelet."""
    objects: tuple[dict, ...] = ()
    """Requests that create objects for all cases."""
    jobs: int = 4
    manager_flags: tuple[str, ...] = ()
    """More flags of the controller manager."""

    @property
    def is_session(self) -> bool:
        return self.records.startswith("kubectl/")

    @property
    def is_trails(self) -> bool:
        """Whether writes are counted after each request, instead of recording responses."""
        return self.records.startswith("trails/")


def read(path: Path) -> Scenario:
    """Read a file; ValueError names what is wrong in it."""
    tree = yaml.safe_load(path.read_text())
    records = tree["records"]
    cases = [_case(case, records) for case in tree["cases"]]
    ids = [case["id"] for case in cases]
    if repeated := {id_ for id_ in ids if ids.count(id_) > 1}:
        raise ValueError(f"{path}: these cases come twice: {sorted(repeated)}")
    return Scenario(
        records=records,
        cases=cases,
        with_controllers=tree.get("controllers", False),
        with_scheduler=tree.get("scheduler", True),
        jobs=tree.get("jobs", 4),
        manager_flags=tuple(tree.get("manager_flags", ())),
        objects=tuple({"path": one["path"], "body": one["body"]} for one in tree.get("objects", ())),
    )


def _case(case: dict, records: str) -> dict:
    step = _command if records.startswith("kubectl/") else _exchange
    steps = [step(written) for written in case["steps"]]
    if records.startswith("trails/"):
        return {"id": case["id"], "steps": steps}
    prefix = records.rpartition("/")[2]
    read_ = {"id": f"{prefix}/{case['id']}", "tags": case.get("tags", [prefix]), "steps": steps}
    return read_ if case.get("namespace", True) else read_ | {"namespace": False}


def _exchange(written: dict) -> dict:
    """`{POST: /path, body: …}` is a request; `patch` is a short name of the patch type."""
    if "pause" in written:
        return {"request": {"pause": written["pause"]}}
    method = next((method for method in METHODS if method in written), None)
    if method is None:
        raise ValueError(f"a step has one of {', '.join(METHODS)}, or pause: {written}")
    request = {"method": method, "path": written[method]}
    headers = dict(written.get("headers", {}))
    if "patch" in written:
        headers["Content-Type"] = PATCHES[written["patch"]]
    rest = {name: written[name] for name in ("body", "raw", "ignore") if name in written}
    return {"request": request | ({"headers": headers} if headers else {}) | rest}


def _command(written: str | dict) -> dict:
    """A text is a command; a read-only one is repeated until it prints what was recorded."""
    step = {"cmd": written} if isinstance(written, str) else dict(written)
    verb = step["cmd"].split()[1:2]
    if verb and verb[0] not in ("get", "describe", "explain", "api-resources"):
        step.setdefault("retry", False)
    return step
