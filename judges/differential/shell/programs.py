"""Random invocations of programs with their options, and pipelines of them."""

import random

from judges.differential.shell import program_snippets


class ProgramScripts:
    """The same seed makes the same script."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def script(self):
        names = [*program_snippets.PROGRAMS]
        lines = []
        for _ in range(self.random.randint(2, 5)):
            name = self.random.choice(names)
            lines.append(self.line(name))
        return "\n".join(lines) + "\n"

    def line(self, name):
        template = self.random.choice(program_snippets.PROGRAMS[name])
        text = template
        while "{" in text and (match := program_snippets.CHOICE.search(text)):
            choices = program_snippets.CHOICES[match[1]]
            text = text[: match.start()] + self.random.choice(choices) + text[match.end() :]
        return f'{text}; echo "{name} $?"'
