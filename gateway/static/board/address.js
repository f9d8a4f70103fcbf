// The part of the address behind "#", which browsers send to no server: the issue that is
// open, by ISIN or code, and the token. Pure.
//
//   #/KR7005930003    #token=…    #/KR7005930003&token=…

const parts = (hash) => hash.slice(1).split("&").filter(Boolean);

// The issue that an address names, null if it names none.
export function issueOf(hash) {
  const text = parts(hash).find((part) => part.startsWith("/"))?.slice(1);
  if (!text) return null;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The same part with another issue, or with none.
export function withIssue(hash, isin) {
  const rest = parts(hash).filter((part) => !part.startsWith("/"));
  const all = isin === null ? rest : [`/${isin}`, ...rest];
  return all.length ? `#${all.join("&")}` : "";
}
