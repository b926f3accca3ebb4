"""`python -m byhand.cli …`, which does what `byhand …` does."""

from byhand.cli import main

main()
