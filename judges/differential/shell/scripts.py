"""Random scripts: conditions, the status of every construct, expansions, functions, traps, redirections, pipelines, here-documents."""

from judges.differential.shell import snippets
from judges.differential.shell.words import Words


class Scripts(Words):
    """A generator of one script; the same seed makes the same script."""

    def script(self):
        head = []
        if self.random.random() < 0.25:
            head.append(self.pick("set -e", "set -u", "set -eu", "set -f", "set -e; set -f", "set -C"))
        if self.is_bash and self.random.random() < 0.3:
            head.append(self.pick("set -o pipefail", "set -euo pipefail", "shopt -s nullglob"))
        if self.random.random() < 0.15:
            head.append(
                self.pick(
                    "trap 'echo bye $?' EXIT",
                    "trap 'echo trap; exit 3' EXIT",
                    "trap 'echo int' INT",
                    "trap 'echo term $x' TERM",
                )
            )
        statements = [self.statement() for _ in range(self.random.randint(3, 9))]
        return "\n".join([*head, *statements]) + "\n"

    def statement(self):
        self.depth += 1
        kinds = [
            self.simple,
            self.simple,
            self.simple,
            self.simple,
            self.status,
            self.status,
            self.assignment,
            self.assignment,
            self.if_,
            self.loop,
            self.for_,
            self.case_,
            self.function,
            self.pipeline,
            self.pipeline,
            self.and_or,
            self.and_or,
            self.group,
            self.group,
            self.document,
            self.positional,
            self.positional,
            self.trap,
            self.fields,
            self.eval_,
            self.exec_,
            self.reading,
            self.options,
            self.unset,
            self.background,
            self.options_loop,
            self.misc,
        ]
        if self.is_bash:
            kinds += [self.bash, self.bash, self.bash, self.bash]
        text = self.pick(*(kinds if self.depth < 4 else kinds[:8]))()
        self.depth -= 1
        return text

    def block(self, most=3):
        return "\n".join("  " + self.statement() for _ in range(self.random.randint(1, most)))

    def simple(self):
        return self.command()

    def status(self):
        return f'{self.command()}; echo "s=$?"'

    def assignment(self):
        return self.pick(
            f"{self.name()}={self.word()}",
            f"n={self.pick(*snippets.NUMBERS)}; m={self.pick(*snippets.NUMBERS)}",
            f"{self.name()}={self.literal()}",
            f'{self.name()}=$({self.command(1)}); echo "$? [${self.name()}]"',
            f"export {self.name()}={self.literal()}",
            f"readonly r{self.random.randrange(3)}={self.literal()}",
        )

    def if_(self):
        text = f"if {self.condition()}; then\n{self.block()}\n"
        if self.maybe(0.3):
            text += f"elif {self.condition()}; then\n{self.block(2)}\n"
        if self.maybe():
            text += f"else\n{self.block(2)}\n"
        return text + self.pick("fi", "fi; echo i$?", "fi > out6", "fi 2>&1 | cat")

    def loop(self):
        limit = self.random.randint(1, 3)
        control = self.pick(
            "",
            "",
            "[ $i = 2 ] && break",
            "[ $i = 1 ] && continue",
            f"{self.condition()} && break",
            f"{self.condition()} || continue",
        )
        variable = f"i{self.depth}"
        control = control.replace("$i ", f"${variable} ")
        word, test = self.pick(("while", "-lt"), ("until", "-ge"))
        return f"{variable}=0\n{word} [ ${variable} {test} {limit} ]; do\n  {variable}=$(({variable}+1))\n  {control or ':'}\n{self.block(2)}\ndone{self.pick('', '; echo l$?', ' > out7', ' < a.txt')}"

    def for_(self):
        variable = self.pick("i", "j", "x")
        head = self.pick(
            f"for {variable} in {self.words()}",
            f"for {variable} in {self.words()}",
            f"for {variable}",
            f"for {variable} in a b c",
            f'for {variable} in "$@"',
            f"for {variable} in *.txt",
        )
        control = self.pick(
            "",
            "",
            "",
            "break",
            "continue",
            f'[ "${variable}" = a ] && continue',
            f"{self.condition()} && break 2",
        )
        return f'{head}; do\n  echo "{variable}=${variable}"\n  {control or ":"}\n{self.block(2)}\ndone{self.pick("", "", "; echo f$?", " | cat")}'

    def case_(self):
        patterns = [
            self.pick(
                "a",
                "a*",
                "*b*",
                "[0-9]*",
                "'*'",
                "?",
                '""',
                "x|y",
                "*.c",
                '"$y"',
                "$y",
                "*:*",
                "[!a-z]*",
                "\\*",
                "/*",
            )
            for _ in range(self.random.randint(1, 3))
        ]
        branches = "\n".join(
            f"  {self.pick('', '(')}{pattern}) {self.command()}{self.pick(';;', ' ;;')}"
            for pattern in patterns
        )
        last = self.pick("  *) echo default;;\n", "")
        return f"case {self.word()} in\n{branches}\n{last}esac{self.pick('', '; echo c$?')}"

    def function(self):
        name = f"f{self.functions}"
        local = self.pick("", "local x=loc", "local x; x=in", f"local y={self.literal()} z", "x=global")
        end = self.pick(
            "",
            "",
            "return 2",
            "return",
            f"{self.condition()} && return 7",
            "exit 9" if self.maybe(0.2) else "",
            "shift",
            "false",
        )
        text = f"{name}() {{\n  {local or ':'}\n{self.block(2)}\n  {end or ':'}\n}}{self.pick('', '', '', ' 2>/dev/null', ' > out8')}\n"
        self.functions += 1
        return text + self.pick(
            f'{name} {self.words(1)}; echo "r$? $x"',
            f"{name} || echo failed",
            f"if {name} a; then echo yes; fi",
            f"echo $({name} b)",
            f"{name} a | cat; echo $?",
            f"! {name} q",
            f"x=env {name}; echo $x",
        )

    def pipeline(self):
        parts = [self.command()]
        # Two processes that write the same file at the same time have no result.
        parts += {self.pick(*snippets.PIPELINE): None for _ in range(self.random.randint(1, 2))}
        return (
            self.pick("", "", "! ")
            + " | ".join(parts)
            + self.pick("", '; echo "p=$?"', " && echo ok", " || echo no")
        )

    def and_or(self):
        parts = [self.pick(self.condition, self.command)() for _ in range(self.random.randint(2, 4))]
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.pick('&&', '||')} {part}"
        return text + self.pick("", "; echo a$?")

    def group(self):
        return self.pick(
            f"(\n{self.block()}\n){self.pick('', '; echo g$?', ' > out11', ' || echo sub', ' 2>&1')}",
            f"{{\n{self.block()}\n}}{self.pick('', '; echo g$?', ' > out12', ' || echo grp', ' 2>&1', ' | cat')}",
            f'({self.name()}=inner; cd dir; {self.command()}; echo ${self.name()}); echo "${self.name()}"',
            f"(set -e; {self.command()}; echo in); echo $?",
            f"(exit {self.pick('3', '0')}) || {self.command()}",
        )

    def document(self):
        body = "\n".join(self.pick(*snippets.DOCUMENT_1) for _ in range(self.random.randint(0, 3)))
        body = body.removesuffix("\\")
        mark = self.pick("EOF", "EOF", "'EOF'", "\\EOF", '"EOF"')
        head = self.pick(*snippets.DOCUMENT)
        dash = self.pick("", "", "-")
        tail = self.pick("", "", " | cat", " || echo bad", "; echo d$?")
        return f"{head} <<{dash}{mark}{tail}\n{body + chr(10) if body else ''}{chr(9) if dash else ''}EOF"

    def positional(self):
        return self.pick(*snippets.POSITIONAL, f'set -- {self.words()}; echo $# "$1"')

    def trap(self):
        if self.depth > 1:
            return self.pick("trap 'echo exit' EXIT", "(trap 'echo t; exit 2' EXIT; false); echo $?")
        return self.pick(*snippets.TRAP) if self.maybe(0.8) else "trap 'echo term' TERM"

    def fields(self):
        ifs = self.pick("':'", "' '", "''", "', '", "':.'", "'a'", '"$n"')
        value = self.pick("a:b:c", "a::b", ":a:", " a  b ", "a, b,,c", "x.y:z", "a b:c d", "", ":", "  ")
        return self.pick(
            f"IFS={ifs}; v='{value}'; for q in $v; do echo \"<$q>\"; done; unset IFS",
            f"IFS={ifs}; set -- {'$v'}; echo $#; unset IFS",
            f"echo '{value}' | {{ IFS={ifs} read a b; echo \"[$a][$b]\"; }}",
            f"v='{value}'; IFS={ifs}; echo $v\"$v\"; unset IFS",
            f'IFS={ifs} read -r a b c <<E\n{value}\nE\necho "[$a][$b][$c]"',
            f"IFS={ifs}; echo $(printf '{value}'); unset IFS",
        )

    def eval_(self):
        return self.pick(*snippets.EVAL)

    def exec_(self):
        return self.pick(*snippets.EXEC)

    def reading(self):
        return self.pick(*snippets.READING)

    def options(self):
        return self.pick(*snippets.OPTIONS)

    def unset(self):
        return self.pick(*snippets.UNSET)

    def background(self):
        return self.pick(*snippets.BACKGROUND)

    def options_loop(self):
        arguments = self.pick("-a -b v x", "-ab v", "-x", "-bfoo -a", "-- -a", "x -a", "-b", "-a -- -b", "")
        return f'set -- {arguments}\nOPTIND=1\nwhile getopts {self.pick("ab:", ":ab:")} o 2>/dev/null; do echo "$o=${{OPTARG-none}} $OPTIND"; done\nshift $((OPTIND-1)); echo "rest $*"'

    def misc(self):
        return self.pick(*snippets.MISC, "echo $((n++ + 1)) 2>/dev/null" if self.is_bash else "echo $((n+1))")

    def bash(self):
        return self.pick(*snippets.BASH)
