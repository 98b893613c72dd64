"""`python -m apiserver`: not built yet, and says so."""

import os
import sys

sys.stderr.write("apiserver: the API server is not built yet; `mockube up` shows what is.\n")
sys.exit(os.EX_UNAVAILABLE)
