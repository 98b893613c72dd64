"""`python -m controller_manager`: cannot be started yet, and says so."""

import os
import sys

sys.stderr.write(
    "controller_manager: the controller manager cannot be started yet; `mockube up` shows what is.\n"
)
sys.exit(os.EX_UNAVAILABLE)
