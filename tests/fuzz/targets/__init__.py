"""Fuzz targets: one module for each part of the program."""

from tests.fuzz.targets import (
    definitions,
    expressions,
    files,
    objects,
    patches,
    requests,
    sequences,
    stages,
    texts,
    wire,
)

TARGETS = {
    target.name: target
    for module in (
        texts,
        wire,
        patches,
        objects,
        definitions,
        expressions,
        files,
        stages,
        requests,
        sequences,
    )
    for target in module.TARGETS
}
