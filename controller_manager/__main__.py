"""`python -m controller_manager`: not built yet, and says so."""

import os
import sys

sys.stderr.write("controller_manager: the controller manager is not built yet; `mockube up` shows what is.\n")
sys.exit(os.EX_UNAVAILABLE)
