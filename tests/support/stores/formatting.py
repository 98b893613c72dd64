"""Requests, responses and events in a short notation, for the checker's sentences."""

from collections.abc import Callable, Iterable
from typing import Any

from mockube.etcd.kv import (
    FROM_KEY,
    Compare,
    Delete,
    DeleteResult,
    Event,
    EventKind,
    KeyValue,
    Put,
    PutResult,
    Range,
    RangeResult,
    Relation,
    Txn,
    TxnResult,
    WatchBatch,
    WatchRequest,
)
from tests.support.stores.history import Compact, Revoke


def words(thing: Any) -> str:
    """Return the notation of a request, a response, or a part of one."""
    return WORDS[type(thing)](thing) if type(thing) in WORDS else str(thing)


def interval(request: Range | Delete | WatchRequest) -> str:
    if request.range_end is None:
        return request.key.decode()
    end = "" if request.range_end == FROM_KEY else request.range_end.decode()
    return f"[{request.key.decode()}, {end})"


def options(request: Any, *names: str) -> str:
    """Return the fields that are set, by name."""
    chosen = ((name, getattr(request, name)) for name in names)
    return "".join(f" {name}" if value is True else f" {name}={value}" for name, value in chosen if value)


def list_text(things: Iterable[Any]) -> str:
    return "{" + "; ".join(words(thing) for thing in things) + "}"


def key_value(kv: KeyValue) -> str:
    value = f"{kv.key.decode()}={kv.value.decode()}"
    return (
        f"{value} (at {kv.mod_revision}, of {kv.create_revision}, version {kv.version}{options(kv, 'lease')})"
    )


def compare(each: Compare) -> str:
    operand = each.operand.decode() if isinstance(each.operand, bytes) else each.operand
    return f"{each.target.value} of {each.key.decode()} {SIGNS[each.relation]} {operand}"


def transaction(txn: Txn) -> str:
    return f"if {list_text(txn.compare)} then {list_text(txn.then)} else {list_text(txn.otherwise)}"


def range_result(result: RangeResult) -> str:
    return f"at {result.revision}: {list_text(result.kvs)} of {result.count}{options(result, 'more')}"


def event(each: Event) -> str:
    previous = "" if each.previous is None else f", before it {words(each.previous)}"
    if each.kind is EventKind.DELETE:
        return f"deletion of {each.kv.key.decode()} at {each.kv.mod_revision}{previous}"
    return f"{words(each.kv)}{previous}"


SIGNS = {Relation.EQUAL: "=", Relation.NOT_EQUAL: "≠", Relation.GREATER: ">", Relation.LESS: "<"}
WORDS: dict[type, Callable[[Any], str]] = {
    KeyValue: key_value,
    Event: event,
    Compare: compare,
    Txn: transaction,
    RangeResult: range_result,
    Range: lambda it: f"range {interval(it)}{options(it, 'revision', 'limit', 'keys_only', 'count_only')}",
    Put: lambda it: f"put {it.key.decode()}={it.value.decode()}{options(it, 'lease', 'previous')}",
    Delete: lambda it: f"delete {interval(it)}{options(it, 'previous')}",
    Compact: lambda it: f"compact {it.revision}",
    Revoke: lambda it: f"revoke {it.lease}",
    WatchRequest: lambda it: (
        f"watch of {interval(it)}{options(it, 'start_revision', 'previous', 'progress')}"
    ),
    PutResult: lambda it: (
        f"put at {it.revision}{'' if it.previous is None else ', before it ' + words(it.previous)}"
    ),
    DeleteResult: lambda it: f"{it.deleted} deleted at {it.revision}, before it {list_text(it.previous)}",
    TxnResult: lambda it: f"{'won' if it.succeeded else 'lost'} at {it.revision}: {list_text(it.results)}",
    WatchBatch: lambda it: f"up to {it.revision}: {list_text(it.events)}",
    type(None): lambda _: "nothing",
}
