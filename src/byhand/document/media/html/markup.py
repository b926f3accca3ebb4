"""HTML as values: text is escaped once, markup is left as it is.

    >>> element("p", "a < b", class_="quiet")
    Markup('<p class="quiet">a &lt; b</p>')
    >>> element("td", element("code", "logits[0]"), colspan=2, hidden=True, title=None)
    Markup('<td colspan="2" hidden><code>logits[0]</code></td>')

An attribute that is None or False is left out, one that is True stands alone, and `class_`,
`aria_label` and `data_a` are class, aria-label and data-a.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from markupsafe import Markup, escape

__all__ = ["Markup", "element", "escape", "joined", "opening"]

VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})
SHAPES = frozenset({"circle", "mspace", "path", "rect", "use"})  # empty elements of SVG and MathML
Attribute = str | int | float | bool | None


def opening(tag: str, **attributes: Attribute) -> Markup:
    """The opening tag of an element whose end is written elsewhere."""
    return _markup(_started(tag, attributes) + ">")


def element(tag: str, *children: str, **attributes: Attribute) -> Markup:
    """An element with its children; text among them is escaped, markup is taken as it is."""
    start = _started(tag, attributes)
    if tag in VOID:
        return _markup(start + ">")
    inside = "".join([each if type(each) is Markup else escape(each) for each in children])
    if not inside and tag in SHAPES:
        return _markup(start + "/>")
    return _markup(f"{start}>{inside}</{tag}>")


def joined(children: Iterable[str], between: str = "") -> Markup:
    """The children joined, each escaped unless it is markup."""
    return escape(between).join(map(escape, children))


def _markup(text: str) -> Markup:
    """A text that is markup already, without the check of `Markup(text)`."""
    return str.__new__(Markup, text)


def _started(tag: str, attributes: Mapping[str, Attribute]) -> str:
    """A tag with its attributes, as yet without its end."""
    text = "<" + tag
    for name, value in attributes.items():
        if type(value) is str:
            text += f' {_name(name)}="{value if value.isalnum() else escape(value)}"'
        elif value is True:
            text += f" {_name(name)}"
        elif value is not None and value is not False:
            text += f' {_name(name)}="{escape(value)}"'
    return text


@cache
def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
