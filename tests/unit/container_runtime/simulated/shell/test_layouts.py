"""Here-documents and arrays that begin or end at odd places have the results of real shells."""

import pytest

from judges.differential.shell.shells import run_simulated


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("delimiter", "end", "output"),
    [
        ("E$l", "E$l", "$x\n"),
        ("\\E$l", "E$l", "$x\n"),
        ("'E l'", "E l", "$x\n"),
        ('a"b"c', "abc", "$x\n"),
        ('"a\\$b"', "a$b", "$x\n"),
        ("E`x`", "E`x`", "\n"),
        ("${l}", "${l}", "\n"),
    ],
)
def test_delimiter_of_a_here_document_is_not_expanded(shell, delimiter, end, output):
    text = "$x" if output == "\n" or "\\" in delimiter or "'" in delimiter or '"' in delimiter else "\\$x"
    result = run_simulated(f"cat <<{delimiter}\n{text}\n{end}\necho b\n", shell)
    assert (result.output, result.errors, result.code) == (f"{output}b\n", "", 0)


def test_line_that_goes_on_in_a_here_document_begins_behind_the_tabs():
    assert run_simulated("cat <<-E\n\\\n\ta\n\\\n\tE\necho b\n").output == "a\nb\n"
    script = "cat <<-E\n\t\\\n\ta\n\tx\\\n\ty\n\t\\\n\tE\necho b\n"
    assert run_simulated(script, "bash").output == "a\nx\ty\nb\n"


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo $(cat <<E; echo q)\nin\nE\necho after\n", "in q\nafter\n"),
        ("cat < <(cat <<E; echo q)\nin\nE\necho after\n", "in\nq\nafter\n"),
        ("cat < <(cat <<E; echo q) <<F\nin\nE\nf\nF\necho after\n", "f\nafter\n"),
        ("cat <<F - <(cat <<E; echo q)\nf\nF\nin\nE\necho after\n", "echo after\nf\nF\nin\nq\n"),
    ],
)
def test_here_document_that_is_open_at_the_end_of_a_substitution_begins_at_the_next_line(script, output):
    assert run_simulated(script, "bash").output == output


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ('a=(x y)b; echo "${a[@]}" ${#a[@]}\n', "(x y)b 1\n"),
        ("a=(x 'y z')# note; echo c\necho \"$a\"\n", "c\n\n"),
        ('a=(\nx # note\ny\n)#b\necho "$a"\n', "(x y)#b\n"),
        ('declare a=(x y)b; echo "$a"\n', "(x y)b\n"),
        ("a=(x y)&& echo ${a[1]}\n", "y\n"),
    ],
)
def test_array_with_something_behind_its_parenthesis_is_a_text(script, output):
    assert run_simulated(script, "bash").output == output


def test_carriage_return_is_a_part_of_words():
    assert run_simulated("echo ~\r\ncat <<E\r\na\nE\r\n").output == "~\r\na\n"


def test_grep_of_busybox_reads_a_folder_as_an_empty_file():
    result = run_simulated("grep -c x /; echo $?")
    assert (result.output, result.errors) == ("0\n1\n", "")
