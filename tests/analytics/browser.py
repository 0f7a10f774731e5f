"""A browser without a window: opens pages, runs scripts in them, prints them to pixels."""

import fcntl
import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
AXE = Path(__file__).parent / "axe"
DARK = "--blink-settings=preferredColorScheme=0"
INSTALL_SECONDS_MAX = 200
ANSWER = "answer-of-the-test"


def browse(page: str, directory: Path, width: str | int = 1400, *more: str) -> tuple[str, str]:
    """Return *page* as a browser has made it, and what the browser had to say."""
    file = directory / "page.html"
    file.write_text(page, "utf-8")
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", *more]
    command += [f"--user-data-dir={directory / 'profile'}", f"--window-size={width},2000"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=20000", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    return done.stdout, done.stderr


def answer(
    page: str, script: str, directory: Path, *more: str, width: int = 1400, before: str = ""
) -> Any:
    """Return what *script*, the body of an async function, returns in *page*, as JSON has it.

    *before* is a script that runs before those of the page.
    """
    told = (
        f'<pre id="{ANSWER}"></pre><script>(async () => {{ {script} }})().then((found) => '
        f'{{ document.getElementById("{ANSWER}").textContent = JSON.stringify(found); }}, (error) '
        f'=> {{ document.getElementById("{ANSWER}").textContent = JSON.stringify(String(error)); '
        "console.error(error); });</script></body>"
    )
    asked = page.replace("</body>", told)
    if before:
        asked = asked.replace('<div id="tip"', f'<script>{before}</script><div id="tip"', 1)
    made, said = browse(asked, directory, width, *more)
    found = re.search(f'<pre id="{ANSWER}">(.*?)</pre>', made, re.DOTALL)
    assert found is not None and "CONSOLE" not in said, said
    return json.loads(unescape(found[1]))


def missing_npm() -> str | None:
    """Return why axe cannot be fetched on this machine, or None."""
    return None if shutil.which("npm") else "not installed: npm"


def axe() -> str:
    """Return the script of axe-core, which npm fetches once as the lock file has it.

    Of several processes that ask at once the first one fetches. Raises RuntimeError with what npm
    says when that fails.
    """
    script = AXE / "node_modules" / "axe-core" / "axe.min.js"
    with (AXE / "package.json").open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not script.exists():
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(
                command, cwd=AXE, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX
            )
            if done.returncode:
                raise RuntimeError(f"npm could not fetch axe-core:\n{done.stderr[-2000:]}")
    return script.read_text("utf-8")
