"""Texts that are nearly valid in a grammar: its tokens in any order, and now and then far too many of them."""

from tests.support.hostile import hostile_bodies

_ODD = (
    "",
    " ",
    "\x00",
    "\n",
    "\t",
    "é",
    "\u0663",
    "\u2028",
    "\U0001f600",
    "%",
    "\\",
    '"',
    "'",
    "`",
    "\ufeff",
    "\x7f",
    "\xa0",
)


MAX_TEXT_LENGTH = 300_000
"""Maximum length in characters; limits of URLs and headers are a megabyte, and bodies have targets of their own."""


def join_tokens(random, tokens, *, maximum=8):
    """Join a few of the tokens; seldom thousands of one or two of them."""
    if random.random() < 0.04:
        part = random.choice(tokens) + random.choice((*tokens, ""))
        first, last = random.choice((part, "", random.choice(tokens))), random.choice((*tokens, ""))
        return first + (part * random.choice((200, 5_000, 40_000)))[:MAX_TEXT_LENGTH] + last
    parts = [random.choice(tokens) for _ in range(random.randrange(maximum + 1))]
    if random.random() < 0.15:
        parts.insert(random.randrange(len(parts) + 1), random.choice(_ODD))
    if random.random() < 0.05:
        parts.insert(random.randrange(len(parts) + 1), hostile_bodies.odd_text(random))
    return "".join(parts)


def mutated(text, random):
    """Return text with a part removed, doubled, moved, or replaced by something odd."""
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(text) + 1)
        end = min(len(text), at + random.choice((0, 1, 1, 3, 20)))
        part = text[at:end]
        put = random.choice(
            ("", part * 2, part[::-1], random.choice(_ODD), hostile_bodies.odd_text(random), part.upper())
        )
        text = text[:at] + put + text[end:]
        if len(text) > 200_000:
            text = text[:100_000]
    return text


LABEL_SELECTORS = (
    "a", "b", "app", "example.com/a", "x" * 64, "1", "-1", "99999999999999999999", "=", "==", "!=", "!", " in ", " notin ", "in", "notin", "(", ")",
    ",", ",,", ">", "<", " ", "exists", "_", ".", "/", "a=b", "a in (b,c)", "!a", "a>1", "a notin ()",
)  # fmt: skip
FIELD_SELECTORS = (
    "metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "spec.x", "=", "==", "!=", ",", "\\", "\\,", "\\=", "\\\\", "a", "b",
    "..", "type", " ", "involvedObject.name", "reason",
)  # fmt: skip
QUANTITIES = (
    "0", "1", "9", "00", ".", "-", "+", "e", "E", "e3", "E-3", "e999999999", "e-999999999", "e99999999999999999999", "n", "u", "m", "k", "M", "G", "T", "P", "Ei",
    "Ki", "Mi", "Gi", "Ti", "Pi", "E", "i", "K", "123456789", "99999999999999999999", ".000000001", ".0000000001", "1" * 400, "9" * 5000, "0" * 5000, "1e30", " ",
)  # fmt: skip
DURATIONS = (
    "0",
    "1",
    "9",
    "h",
    "m",
    "s",
    "ms",
    "us",
    "µs",
    "μs",
    "ns",
    ".",
    "-",
    "+",
    "1h",
    "1.5s",
    "99999999999999999999",
    "9" * 5000,
    ".5",
    "d",
    " ",
    "2540400h",
)
TIMESTAMPS = (
    "2030", "0000", "9999", "-", "01", "12", "13", "31", "30", "29", "T", "t", " ", "00", "23", "24", "59", "60", ":", ".", "000", "999999999", "Z", "z", "+00:00",
    "-23:59", "+24:00", "2030-01-02T03:04:05Z", "2024-02-30T00:00:00Z", "0001-01-01T00:00:00Z", "9" * 500,
)  # fmt: skip
PATHS = (
    "$", "{", "}", ".", "..", "*", "[", "]", "'", '"', "@", "?(", ")", "a", "items", "0", "-1", ":", ",", "==", "!=", ">=", "range", "end", "\\", "\\.", ".spec",
    ".metadata.labels['a.b']", "[?(@.a==1)]", "[0:2:1]", "99999999999999999999",
)  # fmt: skip
MEDIA_TYPES = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "*/*", "application/*", "application/cbor", ";", ",", "=", "as=Table",
    ";as=Table;v=v1;g=meta.k8s.io", ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ";as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io", ";q=0.5", ";q=nan", ";q=-1",
    ";q=1e400", ";stream=watch", ";profile=unversioned", "charset=utf-8", '"', "\\", " ", "v=v1", "g=meta.k8s.io",
    "application/apiextensions", "application/json-patch+json", "application/apply-patch+yaml",
)  # fmt: skip
URL_PATHS = (
    "/", "api", "apis", "v1", "apps", "namespaces", "default", "pods", "deployments", "a", "status", "scale", "proxy", "watch", "log", "exec", "%2f", "%00", "..", ".", "",
    "/api/v1/", "/apis/apps/v1/", "/namespaces/", "healthz", "openapi", "v3", ":80", "é", "A" * 300, "~", "*",
)  # fmt: skip
NAMES = (
    "a",
    "A",
    "0",
    "-",
    "_",
    ".",
    "..",
    "/",
    "a" * 62,
    "a" * 252,
    "example.com",
    "%",
    " ",
    "é",
    "$",
    "kubernetes.io/",
    "*",
    "*.",
    ":",
    "=",
    "80%",
    "101%",
    "-1%",
)
SCHEDULES = (
    "*",
    "*/5",
    "0",
    "59",
    "60",
    "1-5",
    "5-1",
    "1,2",
    "/",
    "-",
    ",",
    " ",
    "@daily",
    "@every 1h",
    "TZ=UTC ",
    "CRON_TZ=x ",
    "MON",
    "JAN",
    "?",
    "L",
    "9" * 30,
    "@",
    "7",
)
ADDRESSES = (
    "1.2.3.4",
    "::1",
    "fe80::1%eth0",
    "10.0.0.0/8",
    "/",
    "0",
    "256",
    ".",
    ":",
    "::",
    "/129",
    "/-1",
    "01.2.3.4",
    "::ffff:1.2.3.4",
    "%",
    "1.2.3.4/33",
    " ",
    "f" * 5,
)
TEMPLATES = (
    "{{", "}}", "{{-", "-}}", " ", ".", ".metadata", ".metadata.name", ".spec.containers", "$", "$x", ":=", "=", "range ", "end", "if ", "else", "else if ", "with ", "define ", '"a"',
    "template ", "block ", "break", "continue", "Now", "Quote ", "| ", "(", ")", "index ", "YAML ", "0", "1", "-1", "1e9", "'a'", "`a`", "/* c */", 'printf "%d" ', "or ", "and ",
    "eq ", "dict ", "default ", "ternary ", "hasKey ", "a: b\n", "- c\n", ", ", "{{ end }}", "{{ if .a }}", "{{ range .spec.containers }}", "{{ range $i, $x := .a }}", "nil", "true",
    "NodeIPWith ", "PodIPWith ", ".status.hostIP ", "{{ .a.b.c }}", "len ", "not ", "{{ with .a }}",
)  # fmt: skip
QUERIES = (
    ".", "[", "]", ".[]", "metadata", "spec", "status", ".conditions", "select(", ")", "==", "!=", "and", "or", '"a"', "'a'", "|", "?", "0", "-1", "99999999999999999999", "null", "true",
    '.metadata.annotations["a"]', "(", ",", " ", "not", ".[0]", ".a?", "<", ">",
)  # fmt: skip
