"""Whether every text of a page can be read: none is cut, none lies over another."""

from playwright.sync_api import Page

from tests.e2e.board_page import SETTLED

# A phone, a notebook, the same at 200 %, a tablet, two desks, a phone held sideways.
SIZES = [
    *((390, 844), (1440, 900), (720, 450), (1024, 768), (1920, 1080), (2560, 1300)),
    (844, 390),
]

# Texts that cannot be read, each with its fault. What a scroller's edge or head cuts
# can be scrolled to; a name that ends in dots is told by its title.
UNREADABLE = r"""() => {
  const found = [];
  const texts = [];
  const unseen = ".visually-hidden, [inert], option, [hidden], noscript, script";
  const figures = ".number, .price, .change, .ratio, .ends, .counts, .sum, .level";
  const layers = ".detail, dialog, #told, .clients :is(th, td):last-child";
  const isOf = (value, ...names) => names.includes(value);
  const isRolled = getComputedStyle(document.body).overflowY === "visible";
  const head = document.querySelector(".scroller thead")?.getBoundingClientRect();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim();
    const own = node.parentElement;
    if (!text || own.closest(unseen) || !own.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(({ width }) => width);
    const isOut = (edge) => boxes.some((box) =>
      box.left < edge.left - 1 || box.right > edge.right + 1 ||
      box.top < edge.top - 3 || box.bottom > edge.bottom + 3);
    const under = own.closest(".scroller tbody") && head;
    let isAway = under && boxes.some(({ top }) => top < under.bottom - 1);
    let isCut = false;
    let hasDots = false;
    for (let up = own; up !== document.body; up = up.parentElement) {
      const { overflowX, textOverflow, clipPath } = getComputedStyle(up);
      isAway ||= clipPath !== "none";
      if (overflowX === "visible" || !isOut(up.getBoundingClientRect())) continue;
      if (isOf(overflowX, "auto", "scroll")) isAway = true;
      else if (textOverflow === "ellipsis" && own.closest("[title]")) hasDots = true;
      else isCut = true;
    }
    if (isAway) continue;
    const where = `${own.closest("[id]")?.id} ${own.className}: ${text}`;
    const bottom = isRolled ? Infinity : innerHeight;
    isCut ||= !hasDots && isOut({ left: 0, right: innerWidth, top: -Infinity, bottom });
    if (isCut || (hasDots && own.closest(figures))) found.push(`cut: ${where}`);
    const layer = own.closest(layers);
    if (!hasDots) texts.push(...boxes.map((box) => ({ where, box, layer, node })));
  }
  texts.forEach((one, place) => {
    for (const other of texts.slice(place + 1)) {
      if (one.layer !== other.layer || one.node === other.node) continue;
      const [a, b] = [one.box, other.box];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) found.push(`${one.where} on ${other.where}`);
    }
  });
  return found;
}"""


def unreadable_texts(page: Page) -> list[str]:
    """Return the texts that cannot be read as the page is now, each with its fault."""
    found: list[str] = page.evaluate(UNREADABLE)
    return found


def unreadable_sizes(page: Page, shown: str) -> list[str]:
    """Return the same at every size, in both colours, with what is shown."""
    found, usual = [], page.viewport_size
    assert usual is not None
    for place, (width, height) in enumerate(SIZES):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if place % 2 else "light")
        page.evaluate(SETTLED, width)
        texts = unreadable_texts(page)
        found += [f"{shown} {width}: {text}" for text in texts]
    page.set_viewport_size(usual)
    page.emulate_media(color_scheme="light")
    return found
