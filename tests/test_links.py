"""Every link of the docs to a file or a heading of ours leads somewhere."""

import re
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).parents[1]
FOLDERS = ("docs", "e2e", ".github")
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^()\s>]+)>?\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z]+:")


def pages() -> list[Path]:
    """Return every page in Markdown."""
    nested = (path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.md"))
    return sorted([*PROJECT.glob("*.md"), *nested])


def links(text: str) -> list[str]:
    """Return the targets of the links to files and headings of ours."""
    found = LINK.findall(CODE.sub("", FENCED.sub("", text)))
    return [target for target in found if not ELSEWHERE.match(target)]


def anchors(text: str) -> set[str]:
    """Return what headings are called in links; of equal ones the later have numbers."""
    times: Counter[str] = Counter()
    found: set[str] = set()
    for title in HEADING.findall(FENCED.sub("", text)):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        found.add(f"{anchor}-{times[anchor]}" if times[anchor] else anchor)
        times[anchor] += 1
    return found


def leads_nowhere(page: Path, target: str) -> bool:
    """Tell whether what a page links to is absent."""
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.exists():
        return True
    return bool(anchor) and anchor not in anchors(path.read_text("utf-8"))


def test_every_link_leads_somewhere() -> None:
    found = [(page, target) for page in pages() for target in links(page.read_text("utf-8"))]
    assert len(found) > 100
    broken = [
        f"{page.relative_to(PROJECT)}: {target}"
        for page, target in found
        if leads_nowhere(page, target)
    ]
    assert not broken, "\n" + "\n".join(broken)


def test_links_that_lead_nowhere_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`: c\n\n## See\n\n## See\n\n[1](page.md#a-b-c) [2](#see) [3](#see-1) [4](#see-2)\n"
        "[5](absent.md) [6](http://example.com) `[7](no.md)`\n"
        "```\n[8](no.md)\n# No\n```\n[9](#no)\n"
    )
    targets = links(page.read_text())
    assert [target for target in targets if leads_nowhere(page, target)] == [
        "#see-2", "absent.md", "#no",
    ]  # fmt: skip
