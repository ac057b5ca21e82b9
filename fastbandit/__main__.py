"""`python -m fastbandit`: the command line."""

from fastbandit.cli.main import main

main()
