"""The table of images of tests that need no others than the built-in ones."""

from typing import Final

from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.simulated.predictions import SimulatedPredictions

IMAGES: Final = ImageTable()
PREDICTIONS: Final = SimulatedPredictions(IMAGES)
