"""A hook of MkDocs. Links from a page to a file outside docs/ lead to the repository, and the marks around what
programs fill in are blocks of their own, without which Python-Markdown sees no table."""

from __future__ import annotations

import os
import posixpath
import re
from typing import Any

_MARK = re.compile(r"^<!-- .* -->$", re.M)
_LINK = re.compile(r"\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def outside(m: re.Match[str]) -> str:
        at = posixpath.normpath(posixpath.join("docs", folder, m[1]))
        if at.startswith("docs/"):
            return m[0]
        kind = "tree" if os.path.isdir(at) else "blob"
        return f"]({config.extra['repository']}/{kind}/main/{at}{m[2] or ''})"

    return _MARK.sub(r"\n\g<0>\n", _LINK.sub(outside, markdown))
