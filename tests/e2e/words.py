"""The words of a page: what of them is English where all is to be Korean."""

import re

from playwright.sync_api import Page

KEPT = re.compile(
    r"(?:tick)?throttle|c-[0-9a-f]{8}|KOSPI|SK|ISIN|KST|TradingView|Enter|Esc|Space|"
    r"English|EN|GMT|ms|kB|[KMG]iB|KR7[0-9A-Z]{9}|Redis|SHA|SSE|docs/operators\.md|"
    r"TICKTHROTTLE_\w+|[a-z]+(?:_[a-z]+)+|https?://\S+"
)
"""Names, codes, keys, units, zones: what is in Latin letters in Korean as well."""

# Whatever is shown, read out, or told on hovering.
TEXTS = """(others) => {
  const found = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!parent.closest(`script, style, noscript, textarea${others}`)) {
      found.push(walker.currentNode.data);
    }
  }
  for (const element of document.querySelectorAll("*")) {
    for (const name of ["aria-label", "aria-valuetext", "title", "placeholder"]) {
      found.push(element.getAttribute(name) ?? "");
    }
  }
  return found;
}"""


def english_left(page: Page, *others: str) -> list[str]:
    """Return the texts of a page in Korean that are not.

    ``others`` are selectors of what is English anyhow: names of settings, identifiers.
    """
    texts = page.evaluate(TEXTS, "".join(f", {other}" for other in others))
    return [text for text in texts if re.search("[A-Za-z]{2}", KEPT.sub("", text))]
