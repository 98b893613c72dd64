"""What the clock of a cluster shows, as the API server streams it to the processes that follow it."""

from datetime import datetime
from typing import Final

from msgspec import Struct

PATH: Final = "/mockube/clock"


class ClockReading(Struct, frozen=True):
    """A straight line: `rate` seconds of the cluster pass in a second of the machine, from one pair of dates on."""

    time: datetime
    """What the clock showed."""
    at: datetime
    """The date of the machine at that moment."""
    rate: float
    """0 while the clock stands still."""
