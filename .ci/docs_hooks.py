"""MkDocs hooks: order the navigation, and rewrite links that leave docs/ into links to the repository's web site."""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()(\.\./[^)#\s]+)(#[^)\s]*)?(\))")

# The sections of the site in order. Pages that are not named here follow in alphabetical order.
SECTIONS = {
    "start": ("Start", "quickstart concepts glossary"),
    "guides": (
        "Guides",
        "triples matrices threshold multikey linear stock keys mp-spdz compose kubernetes evaluators accusations",
    ),
    "operations": ("Operations", "README first-install operate jobs access store"),
    "reference": ("Reference", "configuration errors metrics parameters export-format formats"),
    "security": ("Security", "README"),
    "internals": ("Internals", "architecture"),
    "measurements": ("Measurements", "README benchmarks benchmarks-papers performance"),
}


def on_config(config: Any, **_: Any) -> Any:
    """Builds the navigation from the folders of docs/. A page outside the sections fails the build."""
    docs = Path(config["docs_dir"])
    nav: list[Any] = [{"Home": "index.md"}]
    for folder, (title, first) in SECTIONS.items():
        pages = sorted(path.stem for path in (docs / folder).glob("*.md"))
        ordered = [page for page in first.split() if page in pages]
        ordered += [page for page in pages if page not in ordered]
        nav.append({title: [f"{folder}/{page}.md" for page in ordered]})
    config["nav"] = nav
    return config


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
