"""MkDocs hooks: rewrite links from a page to a repository file outside docs/ into links to the repository's web site."""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()(\.\./[^)#\s]+)(#[^)\s]*)?(\))")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Rewrites relative links that leave docs/. A link to a file that does not exist fails the build."""
    docs = Path(config["docs_dir"])
    source = Path(page.file.abs_src_path)

    def rewrite(match: re.Match[str]) -> str:
        target = (source.parent / match.group(2)).resolve()
        if target.is_relative_to(docs):
            return match.group(0)
        if not target.exists():
            message = f"{page.file.src_path} links to {match.group(2)}, which does not exist"
            raise PluginError(message)
        path = target.relative_to(ROOT).as_posix()
        kind = "tree" if target.is_dir() else "blob"
        return f"{match.group(1)}{config['repo_url']}/{kind}/main/{path}{match.group(3) or ''}{match.group(4)}"

    return LINK.sub(rewrite, markdown)
