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
        self.groups: dict[str, Group] = {}

    def add_same(self):
        self.requests += 1
        self.same += 1

    def add_different(self, resource, request, found, case):
        self.requests += 1
        only_words = all(is_words(at) for at, _, _ in found)
        self.worded += only_words
        signature = f"{_verb(request)} {'wording ' if only_words else ''}{_signature(found)}"
        self.groups.setdefault(signature, Group(signature)).add(resource, case)

    def summary(self):
        share = 100 / max(self.requests, 1)
        return (
            f"{self.requests} requests: {self.same * share:.2f} % answered the same,"
            f" {(self.same + self.worded) * share:.2f} % but for wording"
        )

    def sorted(self):
        return sorted(self.groups.values(), key=lambda group: -group.count)


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
