"""`python -m groupwise`."""

from groupwise.cli import main

main()
