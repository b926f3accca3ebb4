"""`python -m byhand.cli …` is the same as `byhand …`."""

from byhand.cli import main

main()
