"""`python -m mockube`, the same as the command `mockube`."""

import sys

from mockube.cli import main

sys.exit(main())
