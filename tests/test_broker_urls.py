"""The page of broker URLs has every option of the client, with the default that it has."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from urls_page import CONNECTION, PAGE, SECTIONS, page

from lockkeeper.client.url import parse_url


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make urls`"


def test_who_connects_is_read_as_the_page_says() -> None:
    options = "&".join(f"{name}=x" for name in CONNECTION)
    url = parse_url(f"failover:(tcp://a:1)?{options}")
    assert (url.user, url.password, url.client_id) == ("x", "x", "x")


def test_every_default_on_the_page_changes_nothing() -> None:
    rows = [line.split("|") for line in PAGE.read_text("utf-8").splitlines() if line[:3] == "| `"]
    shown = {row[1].strip(" `"): row[2].strip(" `") for row in rows}
    known = {name for section in SECTIONS for name in section.table}
    defaults = {name: shown[name] for name in known if shown[name]}
    assert len(defaults) > 30
    of_addresses = {*SECTIONS[0].table, *SECTIONS[1].table}
    options = "&".join(
        f"{'nested.' if name in of_addresses else ''}{name}={value}"
        for name, value in defaults.items()
    )
    assert parse_url(f"failover:(ssl://a:1)?{options}") == parse_url("failover:(ssl://a:1)")
