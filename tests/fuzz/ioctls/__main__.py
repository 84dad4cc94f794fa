"""Command line: see `runner.main`."""

import sys

from tests.fuzz.ioctls.runner import main

sys.exit(main())
