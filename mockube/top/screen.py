"""What is shown of two readings: lines of text, of which as many as fit into a screen. Pure."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.printable import printable

from .readings import Maybe, Node, Pods, Reading, Unreadable, Usage
from .requests import CUT, LAST, NO_RESPONSE, ClientRequests

T = TypeVar("T")
MIN_ROWS: Final = 2
"""The rows of a section that are shown however small the screen is."""
_GAP: Final = "  "
_UNIT: Final = 1024.0
_GOOD_CODE: Final = 400


class Section(Struct, frozen=True, kw_only=True):
    """A heading, and a table below it; or why there is none."""

    heading: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: frozenset[int] = frozenset()
    """The columns that are aligned at the right."""
    problem: str = ""


class Line(Struct, frozen=True):
    """A line of the screen; those in bold are headings."""

    text: str
    is_bold: bool = False


def sections(
    reading: Reading,
    before: Reading | None,
    requests: Maybe[Sequence[ClientRequests]],
    span: str = LAST,
) -> Sequence[Section]:
    """Return everything that is shown; rates are those since the reading before, and `span` says which requests they are."""
    return (
        _of_nodes(reading),
        _of_pods(reading.pods),
        _of_queues(reading, before),
        _of_requests(requests, span),
        _of_reconciliations(reading.controllers),
    )


def _problem(heading: str, unreadable: Unreadable) -> Section:
    return Section(heading=heading, problem=f"not shown: {unreadable.reason}")


def _of_nodes(reading: Reading) -> Section:
    nodes = reading.nodes
    if isinstance(nodes, Unreadable):
        return _problem("Nodes", nodes)
    usage: Mapping[str, Usage] = {} if isinstance(reading.usage, Unreadable) else reading.usage
    pods: Mapping[str, int] = {} if isinstance(reading.pods, Unreadable) else reading.pods.by_node
    heading = f"Nodes: {_counts([node.state for node in nodes])}"
    if isinstance(reading.usage, Unreadable):
        heading += f"; usage is not shown: {reading.usage.reason}"
    ordered = sorted(
        nodes, key=lambda node: (node.state == "Ready", -_share(usage.get(node.name), node), node.name)
    )
    return Section(
        heading=heading,
        header=("NAME", "STATUS", "CPU", "CPU%", "MEMORY", "MEMORY%", "PODS"),
        rows=[_node_row(node, usage.get(node.name), pods.get(node.name, 0)) for node in ordered],
        numbers=frozenset({2, 3, 4, 5, 6}),
    )


def _share(used: Usage | None, node: Node) -> float:
    return used.cpu / node.cpu if used is not None and node.cpu else 0.0


def _node_row(node: Node, used: Usage | None, pods: int) -> Sequence[str]:
    if used is None:
        return (node.name, node.state, "-", "-", "-", "-", str(pods))
    return (
        node.name,
        node.state,
        f"{used.cpu * 1000:.0f}m",
        _percent(used.cpu, node.cpu),
        _bytes(used.memory),
        _percent(used.memory, node.memory),
        str(pods),
    )


def _percent(part: float, whole: float) -> str:
    return f"{part / whole * 100:.0f}%" if whole else "-"


def _bytes(amount: float) -> str:
    for unit in ("", "Ki", "Mi", "Gi"):
        if amount < _UNIT * 10:
            return f"{amount:.0f}{unit}"
        amount /= _UNIT
    return f"{amount:.0f}Ti"


def _counts(words: Sequence[str]) -> str:
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    return (
        ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), key=lambda each: -each[1]))
        or "none"
    )


def _of_pods(pods: Maybe[Pods]) -> Section:
    if isinstance(pods, Unreadable):
        return _problem("Pods", pods)
    ordered = sorted(pods.by_status.items(), key=lambda each: (-each[1], each[0]))
    return Section(heading="Pods: " + (", ".join(f"{count} {status}" for status, count in ordered) or "none"))


def _of_queues(reading: Reading, before: Reading | None) -> Section:
    controllers = reading.controllers
    if isinstance(controllers, Unreadable):
        return _problem("Queues", controllers)
    known = before is not None and not isinstance(before.controllers, Unreadable)
    earlier = {_name(each): each["status"] for each in before.controllers} if known else {}  # type: ignore[union-attr]
    seconds = reading.time - before.time if before is not None else 0.0
    rows = sorted((_queue_row(each, earlier.get(_name(each)), seconds) for each in controllers), key=_busiest)
    waiting = sum(each["status"]["depth"] for each in controllers)
    return Section(
        heading=f"Queues: {len(controllers)}, in which {waiting} keys wait",
        header=("NAME", "DEPTH", "RUNNING", "ADDS/S", "RETRIES/S", "RETRIES", "MEAN", "LONGEST NOW"),
        rows=[row for row, _ in rows],
        numbers=frozenset(range(1, 8)),
    )


def _name(tree: ReadOnlyTree) -> str:
    return str(tree["metadata"]["name"])


def _queue_row(
    controller: ReadOnlyTree, earlier: ReadOnlyTree | None, seconds: float
) -> tuple[Sequence[str], tuple[float, ...]]:
    """Return a row, and what it is sorted by."""
    now = controller["status"]
    has_rate = (
        earlier is not None and seconds > 0 and now["adds"] >= earlier["adds"]
    )  # it restarts with the manager
    adds, retries = (
        (now[field] - earlier[field]) / seconds if has_rate and earlier else 0.0
        for field in ("adds", "retries")
    )
    mean = now["seconds"] / now["reconciliations"] if now["reconciliations"] else 0.0
    row = (
        _name(controller),
        str(now["depth"]),
        str(now["running"]),
        f"{adds:.1f}" if has_rate else "-",
        f"{retries:.1f}" if has_rate else "-",
        str(now["retries"]),
        _seconds(mean),
        _seconds(now["longestRunningSeconds"]) if now["running"] else "-",
    )
    return row, (-now["depth"], -adds, -now["adds"])


def _busiest(row: tuple[Sequence[str], tuple[float, ...]]) -> tuple[object, ...]:
    return (*row[1], row[0][0])


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f}ms" if seconds < 1 else f"{seconds:.2f}s"


_CODES: Final = {NO_RESPONSE: "-", CUT: "cut"}


def _of_requests(requests: Maybe[Sequence[ClientRequests]], span: str) -> Section:
    if isinstance(requests, Unreadable):
        return _problem("Requests", requests)
    total = sum(each.count for each in requests)
    failed = sum(each.count for each in requests if each.code >= _GOOD_CODE or each.code == CUT)
    return Section(
        heading=f"Requests {span}: {total}, of which {failed} failed",
        header=("CLIENT", "VERB", "CODE", "COUNT", "MEAN", "SLOWEST"),
        rows=[
            (
                each.client,
                each.verb,
                _CODES.get(each.code, str(each.code)),
                str(each.count),
                "-" if each.mean is None else _seconds(each.mean),
                "-" if each.slowest is None else _seconds(each.slowest),
            )
            for each in requests
        ],
        numbers=frozenset({2, 3, 4, 5}),
    )


def _of_reconciliations(controllers: Maybe[Sequence[ReadOnlyTree]]) -> Section:
    if isinstance(controllers, Unreadable):
        return _problem("Reconciliations", controllers)
    found = [(_name(each), one) for each in controllers for one in each["status"].get("newest") or ()]
    found.sort(key=lambda each: -each[1]["seconds"])
    return Section(
        heading="Reconciliations, of the newest of each queue the slowest",
        header=("TOOK", "QUEUE", "OBJECT", "RESULT", "DID"),
        rows=[_reconciliation_row(queue, one) for queue, one in found],
        numbers=frozenset({0}),
    )


def _reconciliation_row(queue: str, one: ReadOnlyTree) -> Sequence[str]:
    about = "/".join(filter(None, (one.get("namespace"), one.get("name"))))
    did = one.get("error") or ", ".join(one.get("actions") or ())
    return (_seconds(one["seconds"]), queue, about, one.get("result", ""), did)


# --- lines


def lines(all_sections: Sequence[Section], rows_each: Sequence[int]) -> Sequence[Line]:
    """Return the lines of sections, of each so many rows."""
    return [
        *chain.from_iterable(
            _lines_of(section, rows) for section, rows in zip(all_sections, rows_each, strict=True)
        )
    ]


def _lines_of(section: Section, rows: int) -> Sequence[Line]:
    left_out = len(section.rows) - rows
    heading = f"{section.heading} ({rows} of {len(section.rows)} rows)" if left_out > 0 else section.heading
    found = [Line(printable(heading), is_bold=True)]
    if section.problem:
        return [*found, Line(_GAP + printable(section.problem))]
    if not section.rows:
        return found
    table = [section.header, *([printable(cell) for cell in row] for row in section.rows[:rows])]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (
            cell.rjust(width) if index in section.numbers else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        found.append(Line(_GAP + _GAP.join(cells).rstrip()))
    return found


def rows_that_fit(all_sections: Sequence[Section], height: int) -> Sequence[int]:
    """Return how many rows of each section fit into a height: what one does not need, others have."""
    fixed = sum(1 + bool(section.problem or section.rows) for section in all_sections)
    row_counts = [len(section.rows) for section in all_sections]
    visible_rows = [min(MIN_ROWS, count) for count in row_counts]
    free_lines = height - fixed - sum(visible_rows)
    while free_lines > 0 and visible_rows != row_counts:
        for index, count in enumerate(row_counts):
            if free_lines > 0 and visible_rows[index] < count:
                visible_rows[index] += 1
                free_lines -= 1
    return visible_rows
