"""Conversations about CEL: custom kinds with random rules of all libraries, and objects to validate."""

import copy
from collections.abc import Generator
from random import Random

from judges.differential.conversations import MERGE, request

RULES = 14
"""Rules of one definition."""
PROPERTIES = {
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "s": {"type": "string", "maxLength": 60},
    "b": {"type": "boolean"},
    "d": {"type": "string", "format": "date-time"},
    "u": {"type": "string", "format": "duration"},
    "l": {"type": "array", "maxItems": 6, "items": {"type": "integer"}},
    "t": {"type": "array", "maxItems": 6, "items": {"type": "string", "maxLength": 20}},
    "z": {
        "type": "array",
        "maxItems": 4,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "maxLength": 9},
    },
    "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
    "x": {"x-kubernetes-int-or-string": True},
    "e": {"type": "string", "enum": ["red", "green"]},
    "o": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "c": {"type": "string", "maxLength": 9}},
    },
    "k": {
        "type": "array",
        "maxItems": 4,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string", "maxLength": 9}, "v": {"type": "integer"}},
        },
    },
    "q": {"type": "string", "maxLength": 9, "nullable": True},
}
OBJECT = {
    "i": 7, "n": 1.5, "s": "Hello-World.example", "b": True, "d": "2026-01-02T03:04:05Z", "u": "1h30m",
    "l": [3, 1, 2], "t": ["b", "a", "c-d"], "z": ["y", "x"], "m": {"one": 1, "two": 2}, "x": "50%", "e": "red",
    "o": {"a": 5, "c": "cc"}, "k": [{"k": "p", "v": 1}, {"k": "q", "v": 2}], "q": None,
}  # fmt: skip
# fmt: off
INT, UINT, DOUBLE, STRING, BOOL, BYTES = "int", "uint", "double", "string", "bool", "bytes"
INTS, STRINGS, MAP, TIME, DURATION, DYN = "ints", "strings", "map", "time", "duration", "dyn"
QUANTITY, IP, CIDR, URL, SEMVER, OPTIONAL, FORMAT = "quantity", "ip", "cidr", "url", "semver", "optional", "format"
LEAVES = {
    INT: ("0", "1", "-1", "2", "42", "9223372036854775807", "0x1f", "self.i", "self.o.a", "self.l[0]", "self.m['one']", "self.k[0].v", "self.l[9]", "self.m['no']", "self.nope", "size(self.s)", "int(self.n)"),
    UINT: ("0u", "1u", "3u", "18446744073709551615u"),
    DOUBLE: ("0.0", "1.5", "-2.25", "1e3", "self.n", "double(self.i)", "1e400", "3.0"),
    STRING: ("''", "'a'", "'Hello'", "\"it's\"", "r'\\d+'", "'a-b-c'", "'ä€😀'", "'%s is %d'", "self.s", "self.e", "self.o.c", "self.t[1]", "self.k[1].k", "'10'", "'2026-01-02T03:04:05Z'", "'1h'", "'1.5Gi'", "'192.168.0.1'", "'fd00::1/64'", "'https://example.com:80/a?b=c'", "'1.2.3-rc.1'", "'\\n\\u00e4\\x41'", "'true'", "'abc.def'", "self.q"),
    BOOL: ("true", "false", "self.b", "has(self.i)", "has(self.o.c)", "has(self.nope)", "has(self.q)"),
    BYTES: ("b'abc'", "b'\\xff'", "b''"),
    INTS: ("[]", "[1,2,3]", "self.l", "[3,1,2]", "self.l + [4]", "[self.i, 1]"),
    STRINGS: ("['a','b']", "self.t", "self.z", "['x','y','x']", "self.s.split('-')", "['c']"),
    MAP: ("{}", "{'a': 1}", "self.m", "{'one': 1, 'b': 2}", "{'a': 1, 'a': 2}"),
    TIME: ("self.d", "timestamp('2026-01-02T03:04:05Z')", "timestamp('0001-01-01T00:00:00Z')", "timestamp('2026-01-02T03:04:05.678+02:00')", "timestamp('x')"),
    DURATION: ("self.u", "duration('1h')", "duration('-1.5s')", "duration('1d')", "duration('300ms')"),
    DYN: ("dyn(1)", "dyn('a')", "self.x", "dyn([1])", "null", "dyn({'a': 1})", "type(1)", "int", "self.o", "self.k"),
    QUANTITY: ("quantity('1.5Gi')", "quantity('100m')", "quantity('-3k')", "quantity('x')", "quantity('20')"),
    IP: ("ip('192.168.0.1')", "ip('::1')", "ip('x')", "ip('224.0.0.1')", "ip('fe80::1')"),
    CIDR: ("cidr('192.168.0.0/24')", "cidr('fd00::/64')", "cidr('x')", "cidr('10.0.0.1/8')"),
    URL: ("url('https://example.com:80/a?b=c&b=d')", "url('/a/b')", "url('x')", "url('https://[::1]:443/')"),
    SEMVER: ("semver('1.2.3')", "semver('1.2.3-rc.1+b')", "semver('v1.0', true)", "semver('x')", "semver('01.2.3', true)"),
    OPTIONAL: ("optional.of(1)", "optional.none()", "self.?i", "self.o.?a", "self.m[?'one']", "self.l[?9]", "optional.ofNonZeroValue(0)"),
    FORMAT: ("format.dns1123Label()", "format.named('uuid').value()", "format.byte()", "format.dateTime()", "format.uri()", "format.labelValue()", "format.qualifiedName()", "format.dns1123Subdomain()", "format.date()", "format.named('nope').value()"),
}
CALLS = {
    INT: ("({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "-({int})", "size({string})", "size({strings})", "{strings}.size()", "size({map})", "int({string})", "int({double})", "int({uint})", "int({time})", "({bool} ? {int} : {int})", "{ints}.sum()", "{ints}.min()", "{ints}.max()", "{ints}.indexOf({int})", "{strings}.lastIndexOf({string})", "{string}.indexOf({string})", "{string}.lastIndexOf({string}, {int})", "{string}.indexOf({string}, {int})", "{time}.getFullYear()", "{time}.getMonth()", "{time}.getDayOfYear()", "{time}.getDate('+02:00')", "{time}.getDayOfWeek()", "{time}.getHours('Europe/Berlin')", "{time}.getMilliseconds()", "{duration}.getHours()", "{duration}.getMinutes()", "{duration}.getSeconds()", "{duration}.getMilliseconds()", "{quantity}.asInteger()", "{quantity}.sign()", "{quantity}.compareTo({quantity})", "{ip}.family()", "{cidr}.prefixLength()", "{semver}.major()", "{semver}.minor()", "{semver}.patch()", "{semver}.compareTo({semver})", "{optional}.orValue({int})", "{optional}.value()", "{ints}[{int}]", "{map}[{string}]", "size({bytes})", "math.greatest({int}, {int})", "math.least({ints})", "{ints}.map(v, v * 2)[0]", "cel.bind(y, {int}, y + y)", "{ints}.first().orValue(0)"),
    UINT: ("({uint} + {uint})", "({uint} - {uint})", "uint({int})", "uint({string})", "uint({double})", "({uint} / {uint})"),
    DOUBLE: ("({double} + {double})", "({double} / {double})", "double({string})", "double({int})", "{quantity}.asApproximateFloat()", "-({double})", "[{double}, {double}].sum()", "[{double}].max()", "math.ceil({double})"),
    STRING: ("({string} + {string})", "string({int})", "string({double})", "string({bool})", "string({time})", "string({duration})", "string({bytes})", "string({uint})", "{string}.lowerAscii()", "{string}.upperAscii()", "{string}.trim()", "{string}.substring({int})", "{string}.substring({int}, {int})", "{string}.charAt({int})", "{string}.replace({string}, {string})", "{string}.replace({string}, {string}, {int})", "{strings}.join()", "{strings}.join({string})", "{string}.find({string})", "{string}.reverse()", "strings.quote({string})", "{string}.format([{int}, {string}])", "'%s %d %.2f %x %e %b %o %X'.format([{string}, {int}, {double}, {int}, {double}, {int}, {int}, {string}])", "'%s'.format([{ints}])", "'%s|%s'.format([{map}, {time}])", "'%d'.format([{dyn}])", "'%s'.format([{duration}])", "'%s'.format([{dyn}])", "{url}.getScheme()", "{url}.getHost()", "{url}.getHostname()", "{url}.getPort()", "{url}.getEscapedPath()", "string({ip})", "string({cidr})", "string({cidr}.masked())", "string({cidr}.ip())", "{strings}[{int}]", "{strings}.min()", "({bool} ? {string} : {string})", "{strings}.first().orValue('n')", "{format}.validate({string}).orValue(['ok']).join(';')"),
    BOOL: ("!({bool})", "({bool} && {bool})", "({bool} || {bool})", "({int} < {int})", "({int} == {int})", "({double} >= {double})", "({int} < {double})", "({string} < {string})", "({string} == {string})", "({bool} != {bool})", "({time} < {time})", "({duration} > {duration})", "({ints} == {ints})", "({map} == {map})", "({dyn} == {dyn})", "({int} in {ints})", "({string} in {strings})", "({string} in {map})", "{string}.startsWith({string})", "{string}.endsWith({string})", "{string}.contains({string})", "{string}.matches({string})", "{string}.matches('^[a-z]+$')", "bool({string})", "{ints}.all(v, v > {int})", "{ints}.exists(v, v == {int})", "{ints}.exists_one(v, v > {int})", "{strings}.all(v, v.size() < {int})", "{map}.all(v, v != {string})", "{map}.exists(v, {map}[v] > {int})", "{ints}.isSorted()", "{strings}.isSorted()", "isQuantity({string})", "{quantity}.isInteger()", "{quantity}.isGreaterThan({quantity})", "({quantity} == {quantity})", "isIP({string})", "ip.isCanonical({string})", "{ip}.isLoopback()", "{ip}.isLinkLocalUnicast()", "{ip}.isUnspecified()", "{ip}.isGlobalUnicast()", "({ip} == {ip})", "isCIDR({string})", "{cidr}.containsIP({string})", "{cidr}.containsIP({ip})", "{cidr}.containsCIDR({cidr})", "isURL({string})", "isSemver({string})", "isSemver({string}, true)", "{semver}.isLessThan({semver})", "sets.contains({ints}, {ints})", "sets.equivalent({strings}, {strings})", "sets.intersects({ints}, {ints})", "{optional}.hasValue()", "{optional}.optMap(v, v + 1).hasValue()", "{format}.validate({string}).hasValue()", "{ints}.all(i, v, i < v)", "{map}.exists(k, v, v == {int})", "(type({dyn}) == type({dyn}))", "(self.k.exists(e, e.v == {int}))", "self.k.all(e, e.k in {strings})", "({bytes} == {bytes})", "({uint} < {int})", "({dyn} > {int})", "({optional} == {optional})"),
    BYTES: ("bytes({string})", "({bytes} + {bytes})"),
    INTS: ("({ints} + {ints})", "{ints}.filter(v, v > {int})", "{ints}.map(v, v + {int})", "{ints}.map(v, v > 1, v * v)", "{ints}.sort()", "{ints}.slice({int}, {int})", "{ints}.distinct()", "{ints}.reverse()", "[{ints}, {ints}].flatten()", "{strings}.map(v, v.size())", "{ints}.transformList(i, v, i + v)", "[{int}, {int}]", "{map}.map(v, {map}[v])", "lists.range({int})", "{ints}.sortBy(v, -v)", "self.k.map(e, e.v)"),
    STRINGS: ("({strings} + {strings})", "{string}.split({string})", "{string}.split({string}, {int})", "{string}.findAll({string})", "{string}.findAll('[a-z]+', {int})", "{strings}.filter(v, v > {string})", "{ints}.map(v, string(v))", "{strings}.sort()", "{map}.map(v, v)", "{url}.getQuery()['b']", "[{string}]", "self.k.map(e, e.k)", "{format}.validate({string}).value()"),
    MAP: ("{map}.transformMap(k, v, v + {int})", "{{'k': {int}}}", "{{{string}: {int}}}", "{strings}.transformMapEntry(i, v, {{v: i}})"),
    TIME: ("({time} + {duration})", "timestamp({string})", "timestamp({int})", "({time} - {duration})"),
    DURATION: ("({duration} + {duration})", "({time} - {time})", "duration({string})"),
    DYN: ("dyn({int})", "dyn({ints})", "dyn({string})", "dyn({map})", "[{int}, dyn({string})][{int}]", "type({string})", "dyn({double})"),
    QUANTITY: ("quantity({string})", "{quantity}.add({quantity})", "{quantity}.sub({int})", "{quantity}.add({int})"),
    IP: ("ip({string})", "{cidr}.ip()"),
    CIDR: ("cidr({string})", "{cidr}.masked()"),
    URL: ("url({string})",),
    SEMVER: ("semver({string})", "semver({string}, {bool})"),
    OPTIONAL: ("optional.of({int})", "{optional}.or({optional})", "{map}[?{string}]", "{ints}[?{int}]", "{optional}.optMap(v, v * 2)", "{optional}.optFlatMap(v, optional.of(v))", "optional.ofNonZeroValue({int})", "{ints}.last()"),
    FORMAT: ("format.named({string}).value()", "format.dns1035Label()"),
}
ODD = ("self.", "1 +", "'", "self.i = 1", "foo(1)", "self.foo()", "x", "a.b.c", "[1,'a']", "{1: 2, 'a': 3}", "has(self)", "self.all(x, true)", "1 ? 2 : 3", "\n\n  1 +\n 2", "oldSelf == self", "oldSelf.i > self.i", "size(1)", "self['i']", "9223372036854775808", "-9223372036854775808", "self.l.map(self, 1)", "[1, 2].exists(x)", "Foo{a: 1}", "google.protobuf.Timestamp{}", "true && 1", "/* x", "// comment\ntrue", "self.metadata.name", "self.x + 1", "self.q == null", "true : false", "has(self.l[0])", "__x__", "in", "self.b == 1", "self.m.one == 1", "0b1", "1.", "'\\q'", "\"\"\"a\nb\"\"\" == 'a'", "self.k.k", "self.o == {'a': 5, 'c': 'cc'}", "self.d == 'x'", "self.e == 'blue'", "dyn(self).nope", "duration(1)", "(", ")", "self.i.foo", "as", "self.i == 1u", "self.n == 1", "type(self)", "cel.bind(self, 1, true)", "!1", "-'a'", "self.t == self.l", "[[1], 2]", "self.z == ['x', 'y']", "self.i in self.t", "true ? 1 : 'a'")
SHOWN = (INT, DOUBLE, STRING, BOOL, INTS, STRINGS, MAP, TIME, DURATION, UINT, DYN)
# fmt: on


def cases(seed: int) -> Generator[Generator[dict, dict, None], None, None]:
    """Yield conversations without end."""
    number = 0
    while True:
        yield _case(Random(f"expressions/{seed}/{number}"))
        number += 1


def _case(random):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    rules = [_rule(random) for _ in range(RULES)]
    checked = yield request("POST", definitions, "dryRun=All", _definition(rules))
    causes = (checked["body"].get("details") or {}).get("causes") or ()
    wrong = {
        number for number in range(RULES) if any(f"validations[{number}]" in one["field"] for one in causes)
    }
    if checked["status"] != 201 and not wrong:
        return
    sound = [rule for number, rule in enumerate(rules) if number not in wrong]
    created = yield request("POST", definitions, "", _definition(sound))
    if created["status"] != 201:
        return
    path = "/apis/${ns}.example.com/v1/namespaces/${ns}/things"
    yield {"wait": path}
    yield request("POST", path, "", _custom_object("x0", {}))
    for number in range(4):
        spec = copy.deepcopy(OBJECT)
        for name in random.sample(sorted(spec), random.choice((0, 1, 3))):
            del spec[name]
        yield request("POST", path, "", _custom_object(f"x{number + 1}", spec))
    yield request("PATCH", f"{path}/x0", "", {"spec": copy.deepcopy(OBJECT)}, content=MERGE)
    yield request("DELETE", f"{definitions}/things.${{ns}}.example.com")


def _custom_object(name, spec):
    return {"apiVersion": "${ns}.example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def _rule(random):
    if random.random() < 0.12:
        return {"rule": random.choice(ODD), "message": "odd"}
    kind = random.choice(SHOWN)
    expression = expression_of(random, kind, random.choice((1, 1, 2, 2, 3)))
    if kind == BOOL and random.random() < 0.5:
        return {"rule": expression}
    shown = {STRING: "({})", DYN: "'%s'.format([{}])"}.get(kind, "'%s'.format([{}])").replace(
        "{}", expression
    )
    rule = f"({expression} == {expression}) ? false : false"
    return {"rule": rule, "messageExpression": shown, "message": "m"}


def expression_of(random: Random, kind: str, depth: int) -> str:
    """Return an expression of a type, and now and then of another."""
    if random.random() < 0.02:
        kind = random.choice([*LEAVES])
    if depth <= 0 or random.random() < 0.1:
        return random.choice(LEAVES[kind])
    parts = random.choice(CALLS[kind])
    for name in LEAVES:
        while f"{{{name}}}" in parts:
            parts = parts.replace(f"{{{name}}}", expression_of(random, name, depth - 1), 1)
    return parts.replace("{{", "{").replace("}}", "}")


def _definition(rules):
    spec = {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": rules}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    group = "${ns}.example.com"
    names = {"plural": "things", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
