"""`python -m apiserver`: cannot be started yet, and says so."""

import os
import sys

sys.stderr.write("apiserver: the API server cannot be started yet; `mockube up` shows what is.\n")
sys.exit(os.EX_UNAVAILABLE)
