// Runs before the first paint, so that no page flashes in the wrong colours.
// shell.js has the switches that write what is read here.
{
  const root = document.documentElement;
  const read = (name) => {
    try {
      return localStorage.getItem(`tickthrottle.${name}`);
    } catch {
      return null; // A browser may refuse storage.
    }
  };
  if (["light", "dark"].includes(read("theme"))) root.dataset.theme = read("theme");
  if (read("colours") === "western") root.dataset.colours = "western";
}
