"""Random words, expansions, conditions and simple commands."""

import random
from collections.abc import Callable

from judges.differential.shell import snippets


class Words:
    """The same seed makes the same words."""

    def __init__(self, seed, *, is_bash=False):
        self.random = random.Random(seed)
        self.is_bash = is_bash
        self.depth = 0
        self.functions = 0

    def pick(self, *options):
        return self.random.choice(options)

    def maybe(self, probability=0.5):
        return self.random.random() < probability

    def name(self):
        return self.pick(*snippets.NAMES)

    def literal(self):
        value = self.pick(*snippets.VALUES)
        kind = self.random.randrange(4)
        if kind == 0:
            return "'" + value.replace("\\\\", "\\") + "'"
        if kind == 1:
            return '"' + value.replace("$", "\\$") + '"'
        if kind == 2 and value and all(char.isalnum() or char in ".:/,*?" for char in value):
            return value
        return self.pick(
            "a", "b", "word", "1", "x.y", "one:two", "a\\ b", "\\*", "'s q'", '"d q"', 'p\\"q', "''", '""'
        )

    def word(self, depth=0):
        options = [
            self.literal,
            self.literal,
            lambda: f"${self.name()}",
            lambda: f'"${self.name()}"',
            lambda: f'"{self.pick("pre-", "")}${{{self.name()}}}{self.pick("-post", "")}"',
            self.parameter,
            lambda: f'"{self.parameter()}"',
            lambda: f"$(({self.arithmetic()}))",
            lambda: self.pick("$?", "$#", '"$@"', "$@", "$*", '"$*"', "$1", "${1}", "$2", '"$#"'),
            lambda: self.pick(
                "*.txt", "dir/*", "?.txt", "[ab].txt", "no*match", "*", "dir/.*n", "'*'", "[!a]*"
            ),
        ]
        if depth < 2:
            options += [
                lambda: f"$( {self.command(depth + 1)})",
                lambda: f'"$( {self.command(depth + 1)})"',
                lambda: f"`{self.pick('echo a b', 'echo $x', 'false', 'true', 'echo `')}`".replace(
                    "echo ``", "echo q`"
                ),
                lambda: f"{self.word(depth + 1)}{self.word(depth + 1)}",
            ]
        if self.is_bash:
            options += [
                self.bash_parameter,
                lambda: self.pick(*snippets.WORD),
            ]
        return self.pick(*options)()

    def words(self, depth=0, most=3):
        return " ".join(self.word(depth) for _ in range(self.random.randint(1, most)))

    def parameter(self):
        name = self.pick(*snippets.NAMES, *snippets.NAMES, "unset1", "1", "2")
        pattern = self.pick(*snippets.PATTERNS)
        quoted = self.pick(pattern, pattern, f"'{pattern}'", f'"{pattern}"')
        default = self.pick("d", "", "a b", "'q r'", "$x", '"$y"', "$((1+1))", "$(echo sub)")
        form = self.pick(
            ":-{d}",
            "-{d}",
            ":+{d}",
            "+{d}",
            ":={d}",
            "={d}",
            "#{p}",
            "##{p}",
            "%{p}",
            "%%{p}",
            "len",
            "",
            ":?{d}",
        )
        if form == "len":
            return f"${{#{name}}}"
        if "=" in form and name.isdecimal():
            form = "-{d}"
        if "?" in form and self.maybe(0.8):
            form = ":-{d}"
        return f"${{{name}{form.format(d=default, p=quoted)}}}"

    def bash_parameter(self):
        name = self.name()
        return self.pick(
            f"${{{name}:{self.pick('0', '1', '2', ' -1')}}}",
            f"${{{name}:1:{self.pick('1', '2', '-1')}}}",
            f"${{{name}/{self.pick('a', 'b*', '[a-c]', '?')}/{self.pick('R', '', 'x y')}}}",
            f"${{{name}//{self.pick('a', ':', ' ', '[a-z]')}/{self.pick('_', '')}}}",
            f"${{{name}/#{self.pick('a', '?')}/S}}",
            f"${{{name}/%{self.pick('c', '?')}/E}}",
            f"${{{name}^}}",
            f"${{{name}^^}}",
            f"${{{name},,}}",
            "${@:2}",
            '"${@:1:1}"',
        )

    def arithmetic(self, depth=0):
        if depth > 2 or self.maybe(0.35):
            return self.pick(*snippets.NUMBERS, "n", "m", "$n", "n", "$#")
        left, right = self.arithmetic(depth + 1), self.arithmetic(depth + 1)
        return self.pick(
            f"{left} + {right}",
            f"{left}-({right})",
            f"{left} * {right}",
            f"({left}) / 3",
            f"({left}) % 5",
            f"{left} < {right}",
            f"{left} == {right}",
            f"{left} && {right}",
            f"{left} || {right}",
            f"!{left}" if not left.startswith("!") else left,
            f"n = {left}",
            f"m += {right}",
            f"{left} ? {right} : {left}",
            f"({left} & 7)",
            f"{left} | 4",
            f"1 << ({right} & 7)",
            f"({left} ^ {right})",
            f"-({left})",
            f"~({left})",
            f"{left} >= {right}",
            f"{left} != {right}",
        )

    def condition(self, depth=0):
        name = self.name()
        options = [
            f'[ "${name}" = {self.literal()} ]',
            f'[ -z "${name}" ]',
            f'[ -n "${name}" ]',
            f'[ "${name}" != a ]',
            f"[ {self.pick('-f', '-d', '-e', '-s', '-r', '-x')} {self.pick('a.txt', 'dir', 'nofile', 'empty', 'run.sh')} ]",
            f"[ {self.pick(*snippets.NUMBERS[:8])} {self.pick('-eq', '-ne', '-lt', '-le', '-gt', '-ge')} {self.pick(*snippets.NUMBERS[:8])} ]",
            f"test {self.literal()}",
            "true",
            "false",
            f"[ $# {self.pick('-eq', '-gt')} {self.pick('0', '1', '2')} ]",
            f'[ "${name}" ]',
            f'[ ! "${name}" ]',
            f'[ "${name}" = a -o -f a.txt ]',
            f'[ -d dir -a "${name}" ]',
            f'[ ! \\( "${name}" = a \\) ]',
            "grep -q two a.txt",
            "grep -q none a.txt",
            f"! {self.pick('true', 'false')}",
            f'case "${name}" in {self.pick("a*", "*", "?", "[0-9]*")}) true;; *) false;; esac',
            f"(exit {self.pick('0', '1', '3')})",
        ]
        if depth < 2:
            options += [
                f"{self.condition(depth + 1)} && {self.condition(depth + 1)}",
                f"{self.condition(depth + 1)} || {self.condition(depth + 1)}",
            ]
        if self.is_bash:
            options += [
                f"[[ ${name} == {self.pick('a*', '*', 'a', '[0-9]*')} ]]",
                f"[[ ${name} =~ {self.pick('^a', '[0-9]+', '(b).*(c)', '^$', 'x|y')} ]]",
                f"[[ -n ${name} && ! -f nofile ]]",
                f"[[ ${name} < b ]]",
                f"(( {self.arithmetic()} ))",
                f"[[ {self.pick(*snippets.NUMBERS[:6])} -lt {self.pick(*snippets.NUMBERS[:6])} ]]",
            ]
        return self.pick(*options)

    def command(self, depth=0):
        options: list[Callable] = [
            lambda: f"echo {self.words(depth + 1)}",
            lambda: f"echo {self.words(depth + 1)}",
            lambda: (
                f"printf '{self.pick('%s,', '[%s]', '%d;', '%5s|', '%-4s|', '%03d ', '%x ', '%b.')}\\n' {self.pick(self.words(depth + 1), '1 2 3', '5')}".replace(
                    "%d;\\n' $", "%s;\\n' $"
                )
                .replace("%03d \\n' $", "%s \\n' $")
                .replace("%x \\n' $", "%s \\n' $")
            ),
            lambda: f"{self.name()}={self.word(depth + 1)}",
            lambda: f"{self.name()}={self.word(depth + 1)} {self.pick(*snippets.CHOICES_0)}",
            lambda: self.condition(depth + 1),
            lambda: self.pick(*snippets.COMMAND),
            lambda: f"(exit {self.pick('0', '1', '5')})",
            lambda: (
                f"sh -c '{self.pick('exit 3', 'echo $0 $1', 'echo $#', 'false')}' {self.pick('', 'n a', 'n b c')}"
            ),
        ]
        if self.functions:
            options += [lambda: f"f{self.random.randrange(self.functions)} {self.words(depth + 1, 2)}"] * 2
        text = self.pick(*options)()
        if self.maybe(0.12):
            text += " " + self.redirect()
        return text

    def redirect(self):
        return self.pick(*snippets.REDIRECT)
