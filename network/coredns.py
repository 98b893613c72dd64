"""What CoreDNS answers by its Corefile: the plugins that change answers, in the order in which CoreDNS asks them. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.regexp.captures import Groups

from . import dns
from .corefile import Corefile, PluginDirective, ServerBlock, is_in_zone, pattern_of
from .dns import Answer
from .view import ClusterView, parse_address

REFUSED: Final = "REFUSED"
SERVFAIL: Final = "SERVFAIL"
_MAX_FORWARDS: Final = 8
"""CoreDNS has no limit; two servers that forward to each other never answer."""
_NOT_SIMULATED: Final = (
    "auto",
    "azure",
    "clouddns",
    "etcd",
    "file",
    "k8s_external",
    "nomad",
    "route53",
    "secondary",
)
"""The plugins whose records nobody knows here."""
_ACTION: Final = re.compile(r"\{\{([^{}]*)\}\}")
_GROUP: Final = re.compile(r"\{(\d{1,3})\}")


class Query(Struct, frozen=True):
    name: str
    record_type: str


Forward = Callable[[str, Query, int], Answer | None]
"""Returns what a server of the cluster answers at an address; None if the address is not one of the cluster."""
_NO_ANSWER: Final = Answer(exists=False)


class NameServer(Struct, frozen=True):
    """A CoreDNS that runs."""

    corefile: Corefile
    view: ClusterView
    forward: Forward

    def answer(self, query: Query, forwards: int = 0) -> Answer:
        """Answer a query as CoreDNS does."""
        query = Query(query.name.rstrip(".").lower(), query.record_type)
        found = self.corefile.block_of(query.name)
        if found is None or forwards > _MAX_FORWARDS:
            return Answer(exists=False, code=REFUSED if found is None else SERVFAIL)
        zone, block = found
        rewritten = _rewrite(block, query)
        answer = self._ask_plugins(zone, block, rewritten, forwards)
        if rewritten.name != query.name:
            records = tuple(
                (query.name if name == rewritten.name else name, kind, value)
                for name, kind, value in answer.records
            )
            answer = replace(answer, records=records)
        return answer

    def _ask_plugins(self, zone: str, block: ServerBlock, query: Query, forwards: int) -> Answer:
        """Return the answer of the first plugin that has one."""
        for directive in block.of("template"):
            if (answer := _template_answer(directive, zone, query)) is not None:
                return replace(answer, plugin=directive.name)
        for directive in block.of("hosts"):
            if (answer := _hosts_answer(directive, zone, query)) is not None:
                return replace(answer, plugin=directive.name)
        for directive in block.of("kubernetes"):
            if (answer := self._kubernetes_answer(directive, zone, query, forwards)) is not None:
                return replace(answer, plugin=directive.name)
        if any(block.of(name) for name in _NOT_SIMULATED):
            return Answer(is_outside=True)
        for directive in sorted(block.of("forward"), key=lambda each: -len(_zone(each.arguments[0]))):
            if is_in_zone(query.name, _zone(directive.arguments[0])) and not _is_excepted(
                directive, query.name
            ):
                return replace(self._forwarded_answer(directive, query, forwards), plugin=directive.name)
        return Answer(exists=False, code=REFUSED)

    def _kubernetes_answer(
        self, directive: PluginDirective, zone: str, query: Query, forwards: int
    ) -> Answer | None:
        zones = [_zone(text) for text in directive.arguments] or [zone]
        if not any(is_in_zone(query.name, each) for each in zones):
            return None
        if query.name.endswith(f".pod.{dns.ZONE}") and ("insecure",) not in directive.lines("pods"):
            answer = self._checked_pod(directive, query)
        else:
            answer = dns.resolve_with(
                self.view, query.name, query.record_type, lambda name: self._ask_again(name, query, forwards)
            )
        return None if not answer.exists and _falls_through(directive, query.name) else answer

    def _checked_pod(self, directive: PluginDirective, query: Query) -> Answer:
        """Return the address in the name of a pod, if there is such a pod and the plugin looks for it."""
        if ("verified",) not in directive.lines("pods"):
            return _NO_ANSWER
        label = query.name.partition(".")[0]
        pod = self.view.pod_at(label.replace("-", "."))
        return dns.resolve(self.view, query.name, query.record_type) if pod is not None else _NO_ANSWER

    def _ask_again(self, name: str, query: Query, forwards: int) -> Answer:
        """Answer for the target of an alias, which may be in another server block."""
        return self.answer(Query(name, query.record_type), forwards + 1)

    def _forwarded_answer(self, directive: PluginDirective, query: Query, forwards: int) -> Answer:
        for target in directive.arguments[1:]:
            text = re.sub(r"^(dns|tls)://", "", target)
            address = parse_address(text) or parse_address(text.rpartition(":")[0].strip("[]"))
            if target.startswith("/") or address is None:
                return _outside(self.view, query.name)
            answer = self.forward(str(address), query, forwards + 1)
            if answer is not None:
                return answer
            if address.is_global:
                return _outside(self.view, query.name)
        return Answer(
            exists=False, code=SERVFAIL
        )  # no host has a private address that is not one of the cluster


def _outside(view: ClusterView, name: str) -> Answer:
    """Return what a name server outside of the cluster answers, as far as anybody can know it."""
    if is_in_zone(name, dns.ZONE) or name.endswith((".in-addr.arpa", ".ip6.arpa")):
        return _NO_ANSWER
    return dns.resolve(view, name)


def _zone(text: str) -> str:
    return text.rstrip(".").lower()


def _is_excepted(directive: PluginDirective, name: str) -> bool:
    return any(is_in_zone(name, _zone(zone)) for words in directive.lines("except") for zone in words)


def _falls_through(directive: PluginDirective, name: str) -> bool:
    """Return whether a plugin leaves a name that it does not have to the next one."""
    return any(
        not zones or any(is_in_zone(name, _zone(zone)) for zone in zones)
        for zones in directive.lines("fallthrough")
    )


# --- rewrite


def _rewrite(block: ServerBlock, query: Query) -> Query:
    for directive in block.of("rewrite"):
        for rule in _rules(directive):
            new = _rewritten_name(rule, query.name) if rule[1:2] == ("name",) else None
            if rule[1:3] == ("type", query.record_type):
                query = Query(query.name, rule[3])
            elif new is not None:
                query = Query(new, query.record_type)
            else:
                continue
            if rule[0] == "stop":
                return query
    return query


def _rules(directive: PluginDirective) -> Iterator[tuple[str, ...]]:
    """Yield the rules of a directive, each with its mode first."""
    arguments = directive.arguments
    lines = [words for words in directive.block if words[0] not in ("answer", "ttl")]
    for words in [(*arguments, *line) for line in lines] or [arguments]:
        yield words if words[:1] in (("stop",), ("continue",)) else ("stop", *words)


def _rewritten_name(rule: Sequence[str], name: str) -> str | None:
    """Return a name after a rule `MODE name [KIND] FROM TO`; None if the rule does not match."""
    kinds = ("exact", "prefix", "suffix", "substring", "regex")
    kind, rest = (
        (rule[2], rule[3:]) if rule[2:3] and rule[2] in kinds and len(rule) > 4 else ("exact", rule[2:])
    )
    if len(rest) < 2:
        return None
    old, new = rest[0].lower(), rest[1].lower()
    if kind == "exact":
        return new.rstrip(".") if name == old.rstrip(".") else None
    if kind == "regex":
        pattern = pattern_of(rest[0])
        match = pattern.search(f"{name}.") or pattern.search(name)
        if match is None:
            return None
        return _GROUP.sub(lambda place: match.text(int(place[1])), new).rstrip(".")
    old, new = (old, new) if kind == "prefix" else (old.rstrip("."), new.rstrip("."))
    if kind == "prefix":
        return new + name.removeprefix(old) if name.startswith(old) else None
    if kind == "suffix":
        return name.removesuffix(old) + new if name.endswith(old) else None
    return name.replace(old, new) if old in name else None


# --- hosts and template


@lru_cache(maxsize=64)
def _hosts(directive: PluginDirective) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    """Return the addresses of each name, and the first name of each line by its address."""
    by_name: dict[str, list[str]] = {}
    by_address: dict[str, list[str]] = {}
    for first, *words in directive.block:
        address = parse_address(first)
        names = [word.rstrip(".").lower() for word in words]
        for name in names if address is not None else ():
            by_name.setdefault(name, []).append(str(address))
        if address is not None and names:
            by_address.setdefault(str(address), []).append(names[0])
    return by_name, by_address


def _hosts_answer(directive: PluginDirective, zone: str, query: Query) -> Answer | None:
    zones = [_zone(text) for text in directive.arguments if not text.startswith("/")] or [zone]
    if not any(is_in_zone(query.name, each) for each in zones):
        return None
    by_name, by_address = _hosts(directive)
    if query.record_type == "PTR":
        reversed_address = dns.reverse_address(query.name)
        names = by_address.get(reversed_address or "", ())
        records = tuple((query.name, "PTR", f"{name}.") for name in names)
        is_known = bool(names)
    else:
        addresses = by_name.get(query.name, ())
        version = "AAAA" if query.record_type == "AAAA" else "A"
        records = tuple(
            (query.name, version, address)
            for address in addresses
            if query.record_type in ("A", "AAAA") and (":" in address) == (version == "AAAA")
        )
        is_known = bool(addresses)
    if not is_known and _falls_through(directive, query.name):
        return None
    return Answer(records=records, exists=is_known)


def _template_answer(directive: PluginDirective, zone: str, query: Query) -> Answer | None:
    _, kind, *zones = directive.arguments
    if kind.upper() not in ("ANY", query.record_type):
        return None
    if not any(is_in_zone(query.name, _zone(each)) for each in zones or [zone]):
        return None
    patterns = [pattern for words in directive.lines("match") for pattern in words] or [".*"]
    match = next(
        (found for pattern in patterns if (found := pattern_of(pattern).search(f"{query.name}."))), None
    )
    if match is None:
        return None if _falls_through(directive, query.name) else _NO_ANSWER
    code = next((words[0].upper() for words in directive.lines("rcode") if words), "NOERROR")
    records = [_record(_expand(" ".join(words), match, query)) for words in directive.lines("answer")]
    if None in records:
        return Answer(exists=False, code=SERVFAIL)
    return Answer(
        records=tuple(record for record in records if record is not None),
        exists=code == "NOERROR",
        code="" if code in ("NOERROR", "NXDOMAIN") else code,
    )


def _expand(text: str, match: Groups, query: Query) -> str:
    """Fill in the actions of a template that the documentation of the plugin has."""
    groups = match.texts

    def value(action: "re.Match[str]") -> str:
        words = action[1].removeprefix("-").removesuffix("-").split()
        if words == [".Name"]:
            return f"{query.name}."
        if words in ([".Type"], [".Class"]):
            return query.record_type if words == [".Type"] else "IN"
        if len(words) == 1 and words[0].startswith(".Group."):
            return match.named.get(words[0].removeprefix(".Group."), "")
        if len(words) == 3 and words[:2] == ["index", ".Match"] and words[2].isdecimal():
            return groups[int(words[2])] if int(words[2]) < len(groups) else ""
        return ""

    return _ACTION.sub(value, text)


def _record(text: str) -> tuple[str, str, str] | None:
    """Return a record in the form of a zone file; None if it is none."""
    words = [word for word in text.split() if word != "IN"]
    if len(words) > 2 and words[1].isdecimal():
        del words[1]
    if len(words) < 3:
        return None
    name, kind, *rest = words
    return name.rstrip(".").lower(), kind.upper(), " ".join(rest)
