"""The cells of each notebook, run in order in one namespace, print the stored output."""

import contextlib
import io

import orjson
import pytest

from tests.support.documents.output_comparison import difference, is_same_output
from tools.packages import ROOT

NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def cells(notebook):
    """Yield the code and the stored output of each code cell."""
    for cell in orjson.loads(notebook.read_bytes())["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), "".join(line for out in cell["outputs"] for line in out["text"])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_shown_output(notebook):
    names = {"__name__": "__main__"}
    for number, (code, shown) in enumerate(cells(notebook), start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{notebook.name}[{number}]", "exec"), names)
        assert is_same_output(shown, printed.getvalue()), difference(shown, printed.getvalue())
