"""The records and fields of awk's input, and its global variables."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.posix_matches import find_matches
from mockube.container_runtime.simulated.shell.process import Process
from mockube.container_runtime.simulated.shell.regular_expressions import extended_expression
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .awk_lexer import AwkError
from .awk_values import AwkValue, InputText, to_number, to_text

_BLANKS: Final = re.compile(r"[ \t\n]+")


class AwkRecords(ABC):
    def __init__(self, process: Process, arguments: Sequence[str]) -> None:
        self.process = process
        self.arrays: dict[str, dict[str, AwkValue]] = {
            "ARGV": {str(index): InputText(text) for index, text in enumerate(arguments)}
        }
        self._variables: dict[str, AwkValue] = {
            "FS": " ", "OFS": " ", "ORS": "\n", "RS": "\n", "SUBSEP": "\034", "CONVFMT": "%.6g", "OFMT": "%.6g",
            "NR": 0.0, "FNR": 0.0, "NF": 0.0, "FILENAME": "", "RSTART": 0.0, "RLENGTH": -1.0, "ARGC": float(len(arguments)),
        }  # fmt: skip
        self._record = ""
        self._fields: list[str] | None = []
        """The fields of the record; None if it is not split yet."""
        self._is_joined = True
        """Whether the record contains the present fields."""
        self._input = ""
        self._position = 0
        self._expressions: dict[str, str] = {}
        self._others: dict[str, list[str]] = {}

    def operands(self) -> list[str]:
        array = self.arrays["ARGV"]
        count = int(to_number(self._variables["ARGC"]))
        return [
            to_text(array.get(str(index))) for index in range(1, min(count, 10_000)) if array.get(str(index))
        ]

    # --- variables

    def variable(self, name: str) -> AwkValue:
        if name == "NF":
            return float(len(self._split()))
        if name in self.arrays:
            raise AwkError(f"{name} is an array")
        return self._variables.get(name)

    def set_variable(self, name: str, value: AwkValue) -> None:
        if name == "NF":
            self._resize(int(to_number(value)))
        self._variables[name] = value

    @abstractmethod
    def count_search(self, steps: int) -> None:
        """Count what a search for a pattern takes: instructions times characters."""

    def convert(self, expression: str) -> str:
        converted = self._expressions.get(expression)
        if converted is None:
            converted = self._expressions[expression] = extended_expression(expression)
        return converted

    # --- records

    def open_file(self, name: str, text: str) -> None:
        self._input = text
        self._position = 0
        self._variables["FILENAME"] = name
        self._variables["FNR"] = 0.0

    def read_record(self) -> bool:
        line = self.next_line()
        if isinstance(line, int):
            return False
        self.set_record(line)
        return True

    def next_line(self) -> str | int:
        """Return the next record of the input; 0 at the end."""
        text, position = self._input, self._position
        if position >= len(text):
            return 0
        separator = to_text(self._variables["RS"])
        if separator == "":
            while text.startswith("\n", position):
                position += 1
            match = re.compile(r"\n\n+").search(text, position)
            end, following = (match.start(), match.end()) if match else (len(text), len(text))
            record = text[position:end].removesuffix("\n") if match is None else text[position:end]
            if position >= len(text):
                return 0
        elif len(separator) == 1:
            end = text.find(separator, position)
            end, following = (len(text), len(text)) if end < 0 else (end, end + 1)
            record = text[position:end]
            if separator != "\n" and following == len(text):
                record = record.removesuffix("\n")
        else:
            spans = next(find_matches(self.convert(separator), text, 1, position, self.count_search), None)
            end, following = spans[0] if spans else (len(text), len(text))
            record = text[position:end]
        self._position = following
        for name in ("NR", "FNR"):
            self._variables[name] = to_number(self._variables[name]) + 1
        return record

    def next_line_of(self, name: str) -> str | int:
        """Return the next line of another file; 0 at its end, -1 if it cannot be read."""
        lines = self._others.get(name)
        if lines is None:
            try:
                data = self.process.host.files.read(self.process.path(name))
            except FileError:
                return -1
            lines = self._others[name] = data.decode("utf-8", "surrogateescape").splitlines()[::-1]
        return lines.pop() if lines else 0

    def set_record(self, text: str) -> None:
        self._record, self._fields, self._is_joined = text, None, True

    # --- fields

    def _split(self) -> list[str]:
        if self._fields is None:
            self._fields = self.split(self._record, to_text(self._variables["FS"]))
            if len(self._fields) > limits.MAX_AWK_FIELDS:
                raise AwkError("the record has too many fields")
        return self._fields

    def split(self, text: str, separator: str) -> list[str]:
        if not text:
            return []
        if separator == " ":
            return [part for part in _BLANKS.split(text) if part]
        if separator == "":
            return list(text)
        if to_text(self._variables["RS"]) == "" and separator != "\n":
            separator = f"({separator if len(separator) > 1 else re.escape(separator)})|\n"
        if len(separator) == 1 and separator != "\\":
            return text.split(separator)
        parts, position = [], 0
        for spans in find_matches(self.convert(separator), text, count_steps=self.count_search):
            start, end = spans[0]
            if end > start:
                parts.append(text[position:start])
                position = end
        return [*parts, text[position:]]

    def field(self, index: int) -> str:
        if index < 0:
            raise AwkError(f"access to negative field {index}")
        if index == 0:
            if not self._is_joined:
                self._record = to_text(self._variables["OFS"]).join(self._split())
                self._is_joined = True
            return self._record
        fields = self._split()
        return fields[index - 1] if index <= len(fields) else ""

    def field_value(self, index: int) -> AwkValue:
        if index > len(self._split()) and index > 0:
            return None
        return InputText(self.field(index))

    def set_field(self, index: int, text: str) -> None:
        if index == 0:
            self.set_record(text)
            return
        if index < 0:
            raise AwkError(f"access to negative field {index}")
        if index > len(self._split()):
            self._resize(index)
        self._split()[index - 1] = text
        self._is_joined = False

    def _resize(self, size: int) -> None:
        if not 0 <= size <= limits.MAX_AWK_FIELDS:
            raise AwkError("the record has too many fields")
        fields = self._split()
        del fields[size:]
        fields += [""] * (size - len(fields))
        self._is_joined = False
