"""`byhand score --survey`: how often each format says another token than the true one, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from byhand.cli.printing import print_parts, talk
from byhand.exit_status import FINE, NO
from byhand.language import _

if TYPE_CHECKING:
    from byhand.scoring.survey import Survey


def tell(found: Survey, page: Path | None, folder: Path | None, as_json: bool) -> int:
    """Shows the report on a survey and writes it; returns the exit status."""
    from byhand.document.survey import report, save, survey_page
    from byhand.drafts import write_whole

    if page is not None:
        write_whole(page, survey_page(found).encode())
        talk(_("the report is in {file}").format(file=page))
    if folder is not None:
        file, _data = save(found, folder)
        talk(_("the report is in {file}").format(file=file))
    if as_json:
        from byhand.document.media.json.survey import write_json

        write_json(found, sys.stdout)
    else:
        print_parts(report(found))
    return FINE if found.answered else NO
