"""The demo of `python -m byhand`: `tiny` on "a b"; with arguments, the command line."""

from __future__ import annotations

import sys

from byhand.entry import main

main(sys.argv[1:] or ["trace", "tiny", "a b"])
