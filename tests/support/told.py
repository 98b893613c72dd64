"""An explanation as lines, for tables of tests: the cause, then what would change it and the fields that it names."""

from mockube.explanations.explanation import field_text


def told(found):
    """Return the state and the cause, the commands or else the texts of the remedies after `-`, and the origins after `@`."""
    return [
        f"{found.state}: {found.cause}",
        *(f"- {each.command or each.text}" for each in found.remedies),
        *(f"@ {each.object} {field_text(each.path)}".rstrip() for each in found.origins),
    ]


def evidence_of(found):
    return [each.text for each in found.evidence]
