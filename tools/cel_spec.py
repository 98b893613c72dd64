"""Run the conformance tests of the CEL project on the engine of `apimachinery/cel`, and print how many pass.

The tests are those of the Go module github.com/google/cel-spec, which the Go command fetches:

    python tools/cel_spec.py $(go mod download -json github.com/google/cel-spec@v0.24.0 | jq -r .Dir)/tests/simple/testdata

Left out is what Kubernetes' expressions do not have: messages and enums of Protocol Buffers, containers of names, functions
that a test declares, expressions that are not checked, and the extensions for bindings, blocks, encoders and mathematics.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import Environment
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.values import CelError, CostExceeded, Uint, equals, map_key

FILES: Final = (
    *("basic", "comparisons", "conversions", "fields", "fp_math", "integer_math", "lists", "logic", "macros"),
    *("macros2", "namespace", "optionals", "parse", "plumbing", "string", "string_ext", "timestamps"),
    *("type_deduction",),
)
UNLIKE: Final = ("container", "disable_check", "disable_macros", "locale", "unknown", "any_unknowns")
"""Fields of tests that are about other settings than Kubernetes': its expressions are always checked."""
OF_MESSAGES: Final = re.compile(
    r"TestAllTypes|google\.protobuf|object_value|message_type|well_known|GlobalEnum"
)
_TOKEN: Final = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<word>[^\s{}\[\]:,;"'\#]+)|(?P<mark>[{}\[\]:,;])"""
)
_ESCAPE: Final = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_PLAIN: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_NAMES: Final = {"INT64": types.INT, "UINT64": types.UINT, "DOUBLE": types.DOUBLE, "BOOL": types.BOOL}
_PRIMITIVES: Final = {**_NAMES, "STRING": types.STRING, "BYTES": types.BYTES}

Message = dict[str, list[Any]]


class NotApplicable(Exception):
    """A test is about what these expressions do not have."""


def tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, text[at : at + 40]
        at = match.end()
        if match.lastgroup is not None:
            yield match[0]


def parse(words: list[str], at: int = 0) -> tuple[Message, int]:
    """Read the fields of a message in the text form of Protocol Buffers."""
    message: Message = {}
    while at < len(words) and words[at] != "}":
        name, at = words[at], at + 1
        if name == "[":
            end = words.index("]", at)
            name, at = "".join(words[at:end]), end + 1
        at += words[at] == ":"
        if words[at] == "{":
            value, at = parse(words, at + 1)
            at += 1
            message.setdefault(name, []).append(value)
        elif words[at][0] in "\"'":
            data = b""
            while at < len(words) and words[at][0] in "\"'":
                data, at = data + unescape(words[at][1:-1]), at + 1
            message.setdefault(name, []).append(data)
        else:
            message.setdefault(name, []).append(words[at])
            at += 1
        while at < len(words) and words[at] in ",;":
            at += 1
    return message, at


def unescape(text: str) -> bytes:
    def replace(match: re.Match[bytes]) -> bytes:
        octal, hexadecimal, short, long, plain = match.groups()
        if octal:
            return bytes([int(octal, 8) & 255])
        if hexadecimal:
            return bytes([int(hexadecimal, 16)])
        if short or long:
            return chr(int(short or long, 16)).encode()
        return _PLAIN.get(plain, plain)

    return _ESCAPE.sub(replace, text.encode())


def value_of(message: Message) -> Any:
    """Return a value of an expression as a test writes it."""
    ((kind, (content,)),) = message.items()
    if kind == "map_value":
        entries = content.get("entries", [])
        return {map_key(value_of(one["key"][0])): value_of(one["value"][0]) for one in entries}
    if kind == "list_value":
        return [value_of(one) for one in content.get("values", [])]
    if kind in ("string_value", "bytes_value"):
        return content.decode() if kind == "string_value" else content
    readers = {"int64_value": int, "uint64_value": lambda text: Uint(int(text)), "double_value": float}
    if kind in readers:
        return readers[kind](content)
    if kind in ("bool_value", "null_value"):
        return content == "true" if kind == "bool_value" else None
    raise NotApplicable


def type_of(message: Message) -> types.Type:
    ((kind, (content,)),) = message.items()
    if kind == "primitive" and content in _PRIMITIVES:
        return _PRIMITIVES[content]
    if kind == "list_type":
        return types.list_of(type_of(content["elem_type"][0]))
    if kind == "map_type":
        return types.map_of(type_of(content["key_type"][0]), type_of(content["value_type"][0]))
    if kind in ("dyn", "null"):
        return types.DYN if kind == "dyn" else types.NULL
    raise NotApplicable


def variables(test: Message) -> dict[str, types.Type]:
    declared = {}
    for one in test.get("type_env", []):
        if "ident" not in one:
            raise NotApplicable
        declared[one["name"][0].decode()] = type_of(one["ident"][0]["type"][0])
    for binding in test.get("bindings", []):
        declared.setdefault(binding["key"][0].decode(), types.DYN)
    return declared


def is_passed(test: Message) -> bool:
    if any(name in test for name in UNLIKE):
        raise NotApplicable
    text = test["expr"][0].decode()
    if OF_MESSAGES.search(f"{text} {test}"):
        raise NotApplicable
    bound = {
        one["key"][0].decode(): value_of(one["value"][0]["value"][0]) for one in test.get("bindings", [])
    }
    fails = "eval_error" in test or "any_eval_errors" in test
    try:
        compiled = Environment(variables(test)).compile(text)
        if "check_only" in test or "typed_result" in test:
            deduced = test["typed_result"][0]
            if compiled.type != type_of(deduced["deduced_type"][0]):
                return False
            if "result" not in deduced:
                return True
        value, _ = compiled.program.evaluate(bound, 1 << 62)
    except (Issues, ProgramError, CelError, CostExceeded):
        return fails
    if fails:
        return False
    expected_value = test.get("value") or (
        test["typed_result"][0]["result"] if "typed_result" in test else None
    )
    return is_same(value, True if expected_value is None else value_of(expected_value[0]))


def is_same(value: Any, expected_value: Any) -> bool:
    if isinstance(expected_value, float) and math.isnan(expected_value):
        return isinstance(value, float) and math.isnan(value)
    return (type(value) is type(expected_value) and equals(value, expected_value) is True) or _are_alike(
        value, expected_value
    )


def _are_alike(value: Any, expected_value: Any) -> bool:
    """Lists and maps may be of subclasses of Python's."""
    return (
        isinstance(value, list | dict)
        and isinstance(value, type(expected_value))
        and equals(value, expected_value) is True
    )


def main(folder: Path) -> None:
    total: Counter[str] = Counter()
    for name in FILES:
        message, _ = parse(list(tokens((folder / f"{name}.textproto").read_text())))
        counts: Counter[str] = Counter()
        for section in message["section"]:
            for test in section.get("test", []):
                try:
                    outcome = "passed" if is_passed(test) else "failed"
                except NotApplicable:
                    outcome = "left out"
                counts[outcome] += 1
                if outcome == "failed":
                    test_name = f"{name}/{section['name'][0].decode()}/{test['name'][0].decode()}"
                    print(f"  {test_name}: {test['expr'][0].decode()[:100]}")
        print(f"{name}: {dict(counts)}")
        total += counts
    print(f"{total['passed']} of {total['passed'] + total['failed']} passed, {total['left out']} left out")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
