"""The demo of `python -m byhand`: `tiny` on "a b"; with arguments, the command line."""

from __future__ import annotations

import sys

from byhand.entry import main

if sys.argv[1:]:
    main()
try:
    main(["trace", "tiny", "a b"])
finally:
    if sys.stderr is not None and sys.stderr.isatty():
        from byhand.cli.printing import talk
        from byhand.language import _

        talk("\n" + _("Go on with: byhand trace journey, byhand serve, byhand --help"))
