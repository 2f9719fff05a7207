"""TeX in pages becomes MathML while the site is built: no script, no font, nothing to load in the browser."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

_MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">(?:\\\((?P<inline>.*?)\\\)|\\\[(?P<block>.*?)\\\])</(?P=tag)>', re.S
)


def to_mathml(page: str) -> str:
    """Replace what pymdownx.arithmatex marked in a page's HTML."""
    return _MARKED.sub(_one, page)


def _one(found: re.Match[str]) -> str:
    if (block := found["block"]) is not None:
        return f'<div class="equation" tabindex="0">{convert(html.unescape(block).strip(), display="block")}</div>'
    return convert(html.unescape(found["inline"]), display="inline")
