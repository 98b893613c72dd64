"""Differences, grouped by what they have in common, each group with its smallest reproducer."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field

QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|\d+|\[[^\]]*\]')
MAX_CASES = 20
"""Differences that are kept per group."""


@dataclass
class Group:
    signature: str
    count: int = 0
    resources: Counter = field(default_factory=Counter)
    cases: list[dict] = field(default_factory=list)

    def add(self, resource, case):
        self.count += 1
        self.resources[resource] += 1
        self.cases = sorted([*self.cases, case], key=lambda case: len(json.dumps(case)))[:MAX_CASES]

    def smallest(self, count=1):
        return self.cases[:count]


class Report:
    def __init__(self):
        self.requests = 0
        self.same = 0
        self.worded = 0
        """The number of responses that differ only in the texts of messages."""
        self.refused = 0
        """The number of requests that both servers refuse for a missing permission."""
        self.decisions = 0
        """The number of requests that one server refuses for a missing permission, and the other one does not."""
        self.groups: dict[str, Group] = {}

    def add_same(self, *, refused=False):
        self.requests += 1
        self.same += 1
        self.refused += refused

    def add_different(self, resource, request, found, case, *, refused=(False, False)):
        """Add a difference; `refused` is whether each server refuses the request for a missing permission."""
        self.requests += 1
        decision = refused[0] != refused[1]
        self.refused += all(refused)
        only_words = all(is_words(at) for at, _, _ in found)
        self.worded += only_words
        self.decisions += decision
        sort = "DECISION " if decision else "wording " if only_words else ""
        signature = f"{_verb(request)} {sort}{_signature(found)}"
        self.groups.setdefault(signature, Group(signature)).add(resource, case)

    def summary(self):
        share = 100 / max(self.requests, 1)
        return (
            f"{self.requests} requests: {self.same * share:.2f} % answered the same,"
            f" {(self.same + self.worded) * share:.2f} % but for wording,"
            f" {self.refused} refused by both, {self.decisions} let in or refused by one server only"
        )

    def sorted(self):
        """Return the groups: different decisions first, then those with most differences."""
        return sorted(
            self.groups.values(), key=lambda group: ("DECISION" not in group.signature, -group.count)
        )


def is_words(at):
    return at.endswith("message") or at.startswith("warnings") or ".details." in at


def _verb(request):
    content = request.get("headers", {}).get("Content-Type", "")
    _, _, subresource = request["path"].partition("?")[0].rpartition("/")
    known = (
        subresource
        if subresource in {"status", "scale", "finalize", "approval", "eviction", "binding"}
        else ""
    )
    kind = content.removeprefix("application/").partition("+")[0]
    return " ".join(filter(None, (request["method"], kind, known)))


def _signature(found):
    """Return a name for the first difference, without its random parts."""
    at, want, got = next((row for row in found if row[0] == "status"), found[0])
    place = re.sub(r"\[\d+\]", "[]", at)
    if at == "status":
        message = next((row for row in found if row[0] == "body.message"), None)
        words = _plain(message[1] if want >= 400 else message[2]) if message else ""
        return f"status {want} against {got}: {words}"
    return f"{place}: {_plain(want)} against {_plain(got)}"


def _plain(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return QUOTED.sub("…", text)[:110]
