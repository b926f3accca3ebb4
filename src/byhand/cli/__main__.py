"""`python -m byhand.cli …` is the same as `byhand …`."""

from byhand.entry import main

main()
