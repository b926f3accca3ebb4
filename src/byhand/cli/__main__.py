"""`python -m byhand.cli …`: the same as `byhand …`."""

from byhand.cli import main

main()
