"""The page for everybody: axe-core finds nothing, and every text stands out from its ground."""

import pytest
from browser import CHROMIUM, DARK, answer, axe, missing_npm
from journal_lived import lived
from journal_reports import page_of, reports_of, run_behind

from lockkeeper_analytics.comparison.changes import compare
from lockkeeper_analytics.page.story import NEEDED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.patient,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]

OPENED = """
    for (const each of document.querySelectorAll("details")) each.open = true;
    for (const each of [...document.querySelectorAll("td .open")].slice(0, 12)) each.click();
    for (const each of document.querySelectorAll("input[type=checkbox]")) each.click();
    timeRange.set(timeRange.start + 1, timeRange.end - 1);
    await new Promise((done) => setTimeout(done, 300));
"""
"""Everything that the page can show is shown."""

# Colours are drawn to be read: they are mixed and half transparent in style sheets.
CONTRAST = """
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const over = (colors) => {
      canvas.clearRect(0, 0, 1, 1);
      for (const color of colors) {
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
      }
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const brightness = (color) => color.map((each) => each / 255)
      .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
      .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
    const found = new Map();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let count = 0;
    while (texts.nextNode()) {
      const host = texts.currentNode.parentElement;
      const isSeen = host.getClientRects().length && texts.currentNode.textContent.trim();
      if (!isSeen || host.closest(".unseen, script, option")) continue;
      const grounds = [];
      for (let each = host; each; each = each.parentElement) {
        grounds.unshift(getComputedStyle(each).backgroundColor);
      }
      const style = getComputedStyle(host);
      const ink = host.closest("svg") ? style.fill : style.color;
      const [one, other] = [over(["#fff", ...grounds]), over(["#fff", ...grounds, ink])]
        .map(brightness).sort((first, second) => second - first);
      const contrast = (one + 0.05) / (other + 0.05);
      count += 1;
      if (contrast < 4.5) {
        found.set(`${host.tagName}.${host.getAttribute("class")}`, contrast.toFixed(2));
      }
    }
    return { found: Object.fromEntries(found), count };
"""
VIEWS = {"light": ((), 1400), "dark": ((DARK,), 1400), "narrow": ((), 420)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lived")
    journal, former = lived(folder / "journal"), lived(folder / "former", each_second=4)
    tables = reports_of(journal)
    comparison = compare(run_behind(reports_of(former, names=NEEDED)), run_behind(tables))
    return page_of(tables, journal, comparison=comparison)


@pytest.fixture(scope="module")
def bare_page():
    """Return the page of a journal without a record."""
    from lockkeeper_analytics.reports import REPORTS

    return page_of({name: [] for name in REPORTS})


@pytest.mark.skipif(missing_npm() is not None, reason=str(missing_npm()))
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["page", "bare_page"])
def test_axe_finds_nothing(name, view, request, tmp_path):
    more, width = VIEWS[view]
    script = f"""{OPENED if name == "page" else ""}
        const found = await axe.run(document);
        return [found.passes.length, found.violations.map(
          (each) => [each.id, each.nodes.map((node) => node.html.slice(0, 200))])];
    """
    checked = request.getfixturevalue(name).replace("</body>", f"<script>{axe()}</script></body>")
    passes, violations = answer(checked, script, tmp_path, *more, width=width)
    assert violations == []
    assert passes > 15


@pytest.mark.parametrize("view", VIEWS)
def test_every_text_stands_out(page, view, tmp_path):
    more, width = VIEWS[view]
    found = answer(page, OPENED + CONTRAST, tmp_path, *more, width=width)
    assert found["found"] == {}
    assert found["count"] > 1000


def test_a_faint_text_would_be_seen(page, tmp_path):
    faint = page.replace("</style>", ".lead { color: #aab; }</style>", 1)
    assert "P.lead" in answer(faint, CONTRAST, tmp_path)["found"]
