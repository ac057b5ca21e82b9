"""`python -m fastbandit`: the command line."""

from fastbandit.cli import main

main()
