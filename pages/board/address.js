// The part of the address behind "#", which browsers send to no server: the view that is
// shown, the instrument that is open in it, by ISIN or code, and the token. Pure.
//
//   #/map    #/map/반도체    #/charts    #/KR7005930003    #token=…    #/005930&token=…
//
// The table is the view of an address that names none. Where an instrument is named, the view
// is not: it is what the visitor sees already. Views are lower-case, codes are not.

export const VIEWS = ["table", "map", "charts"];

const parts = (hash) => hash.slice(1).split("&").filter(Boolean);

const pathOf = (hash) => parts(hash).find((part) => part.startsWith("/"))?.slice(1) ?? "";

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function withPath(hash, path) {
  const rest = parts(hash).filter((part) => !part.startsWith("/"));
  const all = path === "" ? rest : [`/${path}`, ...rest];
  return all.length ? `#${all.join("&")}` : "";
}

// Whether an address names neither a view nor an instrument.
export const isBare = (hash) => pathOf(hash) === "";

// The view that an address names, {name, group}: a group of the map, null for all of them.
// Null where it names an instrument.
export function viewOf(hash) {
  const [name, ...rest] = pathOf(hash).split("/");
  if (name === "") return { name: "table", group: null };
  if (!VIEWS.includes(name)) return null;
  const group = name === "map" ? decoded(rest.join("/")) : "";
  return { name, group: group || null };
}

// The instrument that an address names, null if it names none.
export function instrumentOf(hash) {
  return viewOf(hash) === null ? decoded(pathOf(hash)) : null;
}

// The same part with another view, and no instrument.
export function withView(hash, { name, group }) {
  if (name === "table") return withPath(hash, "");
  return withPath(hash, group === null ? name : `${name}/${encodeURIComponent(group)}`);
}

// The same part with an instrument, or with none.
export const withInstrument = (hash, isin) => withPath(hash, isin ?? "");
