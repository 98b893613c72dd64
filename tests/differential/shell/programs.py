"""Random invocations of programs."""

import random


class ProgramScripts:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def script(self):
        return "echo a\n"
