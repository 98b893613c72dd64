"""`python -m mockube`, the same as the command `mockube`."""

import sys

from mockube.cli.main import main

sys.exit(main())
