"""Explore one scenario, with the controllers as they are or with a mutation: `python -m judges.explorer.exploring SCENARIO [MUTATION]`.

The last line that is printed is the report, as JSON.
"""

import argparse

import msgspec

from judges.explorer.mutants import install, read_mutations, read_scenarios


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario")
    parser.add_argument("mutation", nargs="?")
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--jobs", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.mutation:
        install(read_mutations()[arguments.mutation])

    from mockube.exploration.exploration import Options  # noqa: PLC0415 - after the module of the mutation is known

    from .running import explore  # noqa: PLC0415 - as above

    options = Options(plans=arguments.plans, seconds=arguments.budget, jobs=arguments.jobs)
    report = explore(read_scenarios()[arguments.scenario], options)
    print(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main()
