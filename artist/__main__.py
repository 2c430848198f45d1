"""`python -m artist`."""

from artist.cli.main import main

main()
