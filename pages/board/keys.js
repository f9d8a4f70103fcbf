// Keys that do something wherever the focus is; the table has its own (table.js).

// Each function returns whether it did anything; `step` takes 1 or -1.
export function onKeys({ search, close, step }) {
  const actions = { "/": search, Escape: close, ArrowDown: () => step(1), ArrowUp: () => step(-1) };
  document.addEventListener("keydown", (event) => {
    const isTaken = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey;
    if (isTaken || event.target.closest("input, textarea, select, dialog")) return;
    if (actions[event.key]?.()) event.preventDefault();
  });
}
