"""The test harness for documents: parsing of pages, a shell, and comparison of output."""

import pytest

from tests.support.documents.output_comparison import is_same_output
from tests.support.documents.pages import Command, File, Program, blocks, steps
from tests.support.documents.terminal import Terminal, UnexpectedOutput

PAGE = """# A page

```yaml
# shop/web.yaml
kind: Pod
```

```console
$ cat shop/web.yaml
# shop/web.yaml
kind: Pod
$ echo 'one
> two'
one
> two
```

```console
$ echo whatever
$ echo a \\
  b
```

*Not run by the tests: it needs a
submarine.*

```console
$ dive
```

```python
print(1)
```

```text
1
```
"""


@pytest.fixture
def terminal(tmp_path):
    opened = Terminal(tmp_path / "home")
    yield opened
    opened.close()


def test_page_is_parsed_into_steps():
    assert list(steps(PAGE)) == [
        File(name="shop/web.yaml", text="# shop/web.yaml\nkind: Pod\n"),
        Command(line=9, text="cat shop/web.yaml", output="# shop/web.yaml\nkind: Pod\n"),
        Command(line=12, text="echo 'one\n> two'", output="one\n> two\n"),
        Command(line=19, text="echo whatever", output=None),
        Command(line=20, text="echo a \\\n  b", output=None),
        Program(line=31, text="print(1)\n", output="1\n"),
    ]
    assert [block.not_run for block in blocks(PAGE) if block.not_run] == ["it needs a submarine"]


def test_session_without_prompt_is_refused():
    with pytest.raises(ValueError, match=r"^line 1: a session begins with"):
        list(steps("```console\nmake up\n```\n"))


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        pytest.param("a   1s\n", "a     2m10s\n", id="ages and column widths"),
        pytest.param("ready after 0.8 s", "ready after 12.25 s", id="durations"),
        pytest.param("web-7887448d46-cxx7n", "web-7887448d46-zzzz9", id="suffixes of generated names"),
        pytest.param("web-cxx7n-0", "web-7884s-0", id="suffix that looks like an age"),
        pytest.param("10.244.3.1   node-3", "10.244.1.1   node-1", id="pod IP and node"),
        pytest.param("at https://127.0.0.1:6443", "at https://127.0.0.1:40123", id="ports"),
        pytest.param("a\n...\nz", "a\nb\nc\nz", id="omitted lines"),
        pytest.param("a\n...\nz", "a\nz", id="no omitted line"),
        pytest.param("it ... z", "it is so, z", id="omitted words"),
    ],
)
def test_varying_output_counts_as_alike(shown, printed):
    assert is_same_output(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        pytest.param("web   3/3", "web   2/3", id="different number"),
        pytest.param("web-7887448d46-cxx7n", "web-7887448d47-cxx7n", id="different template hash"),
        pytest.param("node-1   Ready", "node-2   Ready", id="different node"),
        pytest.param("a\n", "a\nb\n", id="additional line"),
        pytest.param("it ... z", "it is\nso, z", id="omitted words do not span lines"),
        pytest.param("", "error", id="unexpected output"),
    ],
)
def test_other_output_counts_as_different(shown, printed):
    assert not is_same_output(shown, printed)


def test_commands_of_page_share_a_shell(terminal):
    for command, shown in (
        ("mkdir there && cd there && COLOUR=blue", None),
        ("basename $PWD; echo $COLOUR", "there\nblue"),
        ("(echo no; exit 3)", "no"),
        ("echo $?", "3"),
    ):
        terminal.type(command, shown)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param("echo 2", "1", id="different output"),
        pytest.param("echo 1; echo oh >&2", "1", id="additional error output"),
        pytest.param("false", None, id="failure with unchecked output"),
        pytest.param("false", "", id="failure without output"),
    ],
)
def test_command_with_different_output_is_detected(terminal, command, shown):
    with pytest.raises(UnexpectedOutput):
        terminal.type(command, shown)
