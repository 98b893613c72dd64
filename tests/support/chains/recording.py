"""The file of recorded chains: certificates, each once, and cases that refer to them by number."""

import base64
import gzip
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from tests.support.chains.shapes import Case

FILE = Path(__file__).parents[2] / "unit/apimachinery/x509/chains.json.gz"


class RecordedCase(NamedTuple):
    case: Case
    error: str
    """Go's error; "" if the chain is trusted."""


def write_recording(cases: Iterable[RecordedCase]) -> None:
    numbers: dict[bytes, int] = {}
    rows = [
        {
            "name": one.name,
            "chain": [numbers.setdefault(data, len(numbers)) for data in one.chain],
            "roots": [numbers.setdefault(data, len(numbers)) for data in one.roots],
            "host": one.host,
            "usage": one.usage,
            "time": one.time.isoformat(),
            "error": error,
        }
        for one, error in cases
    ]
    certificates = [base64.b64encode(data).decode() for data in numbers]
    document = orjson.dumps({"certificates": certificates, "cases": rows})
    FILE.write_bytes(gzip.compress(document, mtime=0))


def read_recording() -> Iterator[RecordedCase]:
    document = orjson.loads(gzip.decompress(FILE.read_bytes()))
    certificates = [base64.b64decode(text) for text in document["certificates"]]
    for row in document["cases"]:
        case = Case(
            row["name"],
            [certificates[number] for number in row["chain"]],
            [certificates[number] for number in row["roots"]],
            row["host"],
            row["usage"],
            datetime.fromisoformat(row["time"]),
        )
        yield RecordedCase(case, row["error"])
