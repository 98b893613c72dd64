"""Draw the pictures of docs/architecture.md: `python -m tools.pictures` writes docs/images/{request,write,reconcile,start}.svg.

Each is a chain of steps from top to bottom, in groups. A test fails if the files are not those that this module draws, if a
step names a file that does not exist, or if the stages of a write are others than those of the program.
"""

from html import escape
from typing import Final, NamedTuple

from tools.packages import ROOT

IMAGES: Final = ROOT / "docs/images"
WIDTH: Final = 760
ROW: Final = 26
HEAD: Final = 34
GAP: Final = 26


class Step(NamedTuple):
    name: str
    description: str
    file: str = ""
    """The file or folder of the step, relative to the folder of its group."""


class Group(NamedTuple):
    title: str
    folder: str
    steps: tuple[Step, ...]


class Picture(NamedTuple):
    title: str
    groups: tuple[Group, ...]
    again: str = ""
    """When the chain begins again."""


REQUEST: Final = Picture(
    "A request passes the transport, the filters, an endpoint, the registry and the store; its response is rendered and written",
    (
        Group(
            "Transport",
            "apiserver/http",
            (
                Step("accept", "TLS, limits for slow and unknown clients", "server.py"),
                Step("adapt", "aiohttp's message becomes a Request", "adapter.py"),
            ),
        ),
        Group(
            "Filters, in their order",
            "apiserver/request",
            (
                Step("host and URL", "which resource and verb", "hosts.py"),
                Step("authenticate", "certificates, tokens, webhook", "access.py"),
                Step("audit and count", "the event, the metrics", "audit.py"),
                Step("impersonate", "another user, if that is allowed", "impersonation.py"),
                Step("limit", "requests in flight, deadline", "limits.py"),
                Step("authorize", "RBAC, Node, ABAC, webhook", "access.py"),
            ),
        ),
        Group(
            "Endpoint and verb",
            "apiserver",
            (
                Step("dispatch", "a page, a watch or a verb", "request/endpoints.py"),
                Step("read", "get, list and watch from the cache or the store", "registry/read.py"),
                Step("write", "the stages of the next picture", "registry/stages.py"),
                Step("store", "one transaction; the watch cache follows", "storage/watch_cache.py"),
            ),
        ),
        Group(
            "Response",
            "apiserver",
            (
                Step("render", "the object, a table or its metadata", "request/rendering.py"),
                Step("write bytes", "at once, in chunks, compressed", "http/response.py"),
            ),
        ),
    ),
)

WRITE: Final = Picture(
    "A write reads the old object, makes and admits the new one, and prepares, validates and stores it",
    (
        Group(
            "READING: a change begins with the stored object",
            "apiserver/registry",
            (
                Step("read_old", "decode it; compare the UID", "update.py"),
                Step("convert_old", "to the client's version"),
                Step("convert_old_by_webhook", "if a webhook has to"),
            ),
        ),
        Group(
            "ADMISSION: the new object",
            "apiserver",
            (
                Step("decode", "body, patch or configuration; defaults, managers", "registry/body.py"),
                Step("convert", "to the version that is admitted", "registry/convert.py"),
                Step("admit", "mutating admission; compare resourceVersions", "admission/chain.py"),
            ),
        ),
        Group(
            "STORAGE: what is stored",
            "apiserver",
            (
                Step("prepare", "the kind's strategy: generation, status", "kinds/strategy.py"),
                Step("allocate", "addresses and ports", "allocation"),
                Step("authorize", "rights for what is written", "admission/chain.py"),
                Step("validate", "the kind's rules, errors and warnings", "kinds/kind_rules.py"),
                Step("authorize_creation", "the verb create for an update or apply", "registry/stages.py"),
                Step("admit_validated", "validating admission", "admission/chain.py"),
                Step("keep_old_times", "old times of managers if nothing changed"),
                Step("convert_to_store", "custom objects to the stored version", "registry/convert.py"),
                Step("convert_by_webhook", "if a webhook has to"),
                Step("encode", "canonical JSON; unchanged: the end", "storage/stored_object.py"),
                Step("commit", "one transaction, if nothing came between", "registry/stages.py"),
            ),
        ),
    ),
    again="again from READING if another write came between; a creation tries another name or address from STORAGE",
)

RECONCILE: Final = Picture(
    "A change reaches a queue; a pure function makes a plan from the caches; an executor carries it out",
    (
        Group(
            "From a change to a key",
            "client",
            (
                Step("list and watch", "one stream for each resource", "cache/reflector.py"),
                Step("cache", "one view of each object, with indexes", "cache/informer.py"),
                Step("watches", "a change becomes keys"),
                Step("queue", "each key once, with backoff", "queue/workqueue.py"),
            ),
        ),
        Group(
            "From a key to writes",
            "controller_manager",
            (
                Step("wait", "until the caches contain the last write", "control/own_writes.py"),
                Step("reconcile", "a pure function: caches and time to a Plan", "control/runner.py"),
                Step("execute", "slow start, preconditions", "control/executor.py"),
                Step("events, requests", "by client/verbs.py, while the process leads"),
            ),
        ),
    ),
    again="each write comes back as a change",
)

START: Final = Picture(
    "mockube up starts the API server, then the controller manager; each makes its parts from its flags",
    (
        Group(
            "mockube up",
            "mockube",
            (
                Step("flags", "command line and environment", "cli/up.py"),
                Step("cluster", "the folder, its lock and its record", "clusters/supervisor.py"),
                Step("launch", "the flags of both programs", "launch.py"),
                Step("processes", "the server, then the manager", "processes/control_plane.py"),
            ),
        ),
        Group(
            "API server",
            "apiserver",
            (
                Step("flags", "argv becomes a frozen Config", "config/command_line.py"),
                Step("parts", "one function makes each part", "parts"),
                Step("order", "the list of the parts", "app.py"),
                Step("start", "store, cache, objects it requires, listeners", "running.py"),
            ),
        ),
        Group(
            "Controller manager",
            "controller_manager",
            (
                Step("flags", "argv becomes a frozen Config", "command_line.py"),
                Step("parts", "client, caches, controllers, kubelets", "app.py"),
                Step("lead", "run controllers while it holds the lease", "running.py"),
            ),
        ),
    ),
)

PICTURES: Final = {"request": REQUEST, "write": WRITE, "reconcile": RECONCILE, "start": START}

_STYLE: Final = """    .group { fill: #eff6ff; stroke: #3b82f6; stroke-width: 1.5; rx: 10 }
    .title { fill: #0f172a; font-weight: 600; font-size: 15px }
    .folder, .where { fill: #64748b; font-family: ui-monospace, monospace; font-size: 12px }
    .name { fill: #1d4ed8; font-weight: 600 }
    .what { fill: #334155 }
    .link { fill: none; stroke: #64748b; stroke-width: 1.5; marker-end: url(#tip) }
    .again { fill: #64748b; font-size: 12px }"""


def draw(picture: Picture) -> str:
    """Return a picture as SVG."""
    body, y = [], 20
    for index, group in enumerate(picture.groups):
        if index:
            body.append(f'  <path class="link" d="M{WIDTH // 2} {y - GAP}v{GAP - 2}"/>')
        body += _draw_group(group, y)
        y += HEAD + ROW * len(group.steps) + 8 + GAP
    height = y - GAP + 20
    if picture.again:
        body.append(f'  <path class="link" d="M{WIDTH - 36} {height - 12}h20V24h-4"/>')
        body.append(
            f'  <text class="again" x="{WIDTH - 44}" y="{height - 8}" text-anchor="end">{escape(picture.again)}</text>'
        )
        height += 4
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"',
            '     font-family="ui-sans-serif, system-ui, sans-serif" font-size="13">',
            f"  <title>{escape(picture.title)}</title>",
            "  <style>",
            _STYLE,
            "  </style>",
            '  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
            '    <path d="M0 0 8 4 0 8z" fill="#64748b"/></marker></defs>',
            f'  <rect width="{WIDTH}" height="{height}" rx="12" fill="#f8fafc"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _draw_group(group: Group, y: int) -> list[str]:
    height = HEAD + ROW * len(group.steps) + 8
    lines = [
        f'  <g transform="translate(20 {y})">',
        f'    <rect class="group" width="{WIDTH - 56}" height="{height}"/>',
        f'    <text class="title" x="16" y="24">{escape(group.title)}</text>',
        f'    <text class="folder" x="{WIDTH - 72}" y="24" text-anchor="end">{group.folder}/</text>',
    ]
    for number, step in enumerate(group.steps):
        row = HEAD + ROW * number + 18
        lines.append(f'    <text class="name" x="16" y="{row}">{escape(step.name)}</text>')
        lines.append(f'    <text class="what" x="232" y="{row}">{escape(step.description)}</text>')
        if step.file:
            lines.append(
                f'    <text class="where" x="{WIDTH - 72}" y="{row}" text-anchor="end">{step.file}</text>'
            )
    return [*lines, "  </g>"]


def main() -> None:
    for name, picture in PICTURES.items():
        (IMAGES / f"{name}.svg").write_text(draw(picture))


if __name__ == "__main__":
    main()
