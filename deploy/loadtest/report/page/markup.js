// Elements from values; text stays text.

// Attributes of null are left out; of what is inside, null and "" are.
function element(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) if (isKnown(value)) made.setAttribute(key, value);
  made.append(...inside.flat(Infinity).filter((part) => isKnown(part) && part !== ""));
  return made;
}

// Only for markup that is written here, with numbers in it at most.
function drawing(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  return template.content.firstElementChild;
}

const bold = (text) => element("b", null, text);
const says = (...inside) => element("p", { class: "says" }, ...inside);
const wrong = (texts) => (texts.length ? element("ul", { class: "wrong" }, texts.map((text) => element("li", null, text))) : null);

// A titled section with its line of explanation.
function panel(name, title, about, ...inside) {
  const id = `${name.replaceAll(" ", "-")}-title`;
  return element(
    "section",
    { class: `panel ${name}`, "aria-labelledby": id },
    element("h2", { id }, title),
    about && element("p", { class: "soft note" }, about),
    ...inside,
  );
}

// A table that scrolls sideways; heads are [text, class], and the first cell heads its row.
function table(caption, heads, rows, foot) {
  const line = ([first, ...rest]) =>
    element(
      "tr",
      null,
      element("th", { scope: "row", class: heads[0][1] }, first),
      rest.map((cell, place) => element("td", { class: heads[place + 1][1] }, cell)),
    );
  return element(
    "div",
    { class: "scroll", role: "region", "aria-label": caption, tabindex: 0 },
    element(
      "table",
      null,
      element("caption", { class: "visually-hidden" }, caption),
      element("thead", null, element("tr", null, heads.map(([text, name]) => element("th", { scope: "col", class: name }, text)))),
      element("tbody", null, rows.map(line)),
      foot && element("tfoot", null, line(foot)),
    ),
  );
}
const numbers = (...texts) => texts.map((text) => [text, "number"]);

// How good something is: a shape, a colour and a word.
function level(isGood, word) {
  const name = isGood ? "ok" : "bad";
  const [frame, mark] = isGood
    ? ['<circle cx="12" cy="12" r="10"/>', "M7 12.5l3.2 3.2L17 9"]
    : ['<path d="M7.9 2h8.2L22 7.9v8.2L16.1 22H7.9L2 16.1V7.9z"/>', "M8.5 8.5l7 7M15.5 8.5l-7 7"];
  const icon = drawing(
    `<svg class="level" data-level="${name}" viewBox="0 0 24 24" aria-hidden="true"><g fill="currentColor">${frame}</g>` +
      `<path class="mark" d="${mark}" fill="none" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"/></svg>`,
  );
  return word ? element("span", { class: "worded", "data-level": name }, icon, word) : icon;
}

// A value as a bar beneath its words, full for the greatest of its column.
function metered(words, value, most, token = "accent") {
  const share = most > 0 ? Math.min(1, value / most) : 0;
  const bar = element("i", { style: `width: ${(share * 100).toFixed(1)}%; background: var(--${token})` });
  return [words, element("span", { class: "meter", "aria-hidden": "true" }, bar)];
}
