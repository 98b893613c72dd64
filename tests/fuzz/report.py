"""Print the results of a run."""

import sys

import orjson


def write(figures, *, seconds, seed, out=sys.stdout):
    def line(text=""):
        print(text, file=out)

    line(
        f"fuzz: seed {seed}, {seconds / 60:.1f} minutes, {sum(found.examples for found in figures.values())} examples"
    )
    for name, found in figures.items():
        codes = ", ".join(f"{outcome} {count}" for outcome, count in found.outcomes.most_common(6))
        blocked = f", longest callback {found.longest:.3f} s" if found.longest else ""
        line(
            f"  {name:20} {found.examples:9} examples, slowest {found.slowest[0]:.2f} s CPU{blocked}; {codes}"
        )
    findings = [(name, finding) for name, found in figures.items() for finding in found.findings.values()]
    line(f"faults: {len(findings)}")
    for name, finding in findings:
        line()
        line(f"--- {name}: {finding.signature} ({finding.count} times)")
        line(orjson.dumps(finding.case).decode()[:1500])
        line(finding.detail[-2500:])
