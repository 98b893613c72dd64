"""compose.yaml as a tree, with every variable at its default."""

import re

import yaml

from tests.support.processes.process import ROOT

_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")


def services():
    """Services by name, in the order of the file."""
    text = (ROOT / "compose.yaml").read_text()
    return yaml.safe_load(_VARIABLE.sub(r"\1", text).replace("$$", "$"))["services"]
