"""`python -m pipeline`: the command `threadloom`."""

from pipeline.cli import main

raise SystemExit(main())
