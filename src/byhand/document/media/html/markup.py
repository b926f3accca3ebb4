"""HTML as values: what is not markup already is escaped, once and everywhere.

    >>> element("p", "a < b", class_="quiet")
    Markup('<p class="quiet">a &lt; b</p>')
    >>> element("td", element("code", "logits[0]"), colspan=2, hidden=True, title=None)
    Markup('<td colspan="2" hidden><code>logits[0]</code></td>')

An attribute that is None or False is left out, one that is True stands alone, and `class_`,
`aria_label` and `data_a` are class, aria-label and data-a.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

__all__ = ["Markup", "element", "escape", "joined", "opening"]

VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})
Attribute = str | int | float | bool | None


def opening(tag: str, **attributes: Attribute) -> Markup:
    """The opening tag of an element whose end is written elsewhere."""
    written = "".join(
        f" {_name(name)}" if value is True else f' {_name(name)}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{tag}{written}>")


def element(tag: str, *children: str, **attributes: Attribute) -> Markup:
    """An element with its children; text among them is escaped, markup is taken as it is."""
    start = opening(tag, **attributes)
    return start if tag in VOID else start + joined(children) + Markup(f"</{tag}>")


def joined(children: Iterable[str], between: str = "") -> Markup:
    """Children one after the other, each escaped unless it is markup."""
    return Markup(escape(between).join(map(escape, children)))


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
