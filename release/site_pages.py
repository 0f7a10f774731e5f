"""The site's pages: the README is its start, and what is no page of the docs is on GitHub."""

import re
from pathlib import Path
from posixpath import dirname, normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parents[1]
DOCS = "docs/"
LINK = re.compile(r"(\]\()([^()\s#:]+)((?:#[^()\s]*)?\))")


def on_config(config: MkDocsConfig) -> None:
    """Add every decision to the menu, after their list."""
    folder = Path(config.docs_dir) / "adr"
    pages = ["README.md", *sorted(path.name for path in folder.glob("0*.md"))]
    config.nav = [*(config.nav or []), {"Decisions": [f"adr/{page}" for page in pages]}]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the README as the first page."""
    text = with_links((PROJECT / "README.md").read_text("utf-8"), "README.md", config)
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page whose links lead to pages of the site, or to GitHub."""
    if page.file.src_uri == "index.md":
        return markdown
    return with_links(markdown, DOCS + page.file.src_uri, config)


def with_links(text: str, name: str, config: MkDocsConfig) -> str:
    """Return the text of the file called *name* with its links as the site has them."""

    def moved(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        path = normpath(f"{dirname(name)}/{target}".lstrip("/"))
        if not path.startswith(DOCS) or (PROJECT / path).is_dir():
            return f"{before}{config.repo_url}/blob/main/{path}{after}"
        return before + (target.removeprefix(DOCS) if name == "README.md" else target) + after

    return LINK.sub(moved, text)
