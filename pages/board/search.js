// What a search finds: by name, code, ISIN, market or sector, and by first consonants of
// what is Korean. Pure.

const LEADING = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ";
const FIRST_SYLLABLE = 0xac00;
const SYLLABLES = 11_172;
const SYLLABLES_OF_A_CONSONANT = 588;

// "삼성전자" -> "ㅅㅅㅈㅈ"; other characters stay.
export function consonants(text) {
  return Array.from(text, (character) => {
    const place = character.codePointAt(0) - FIRST_SYLLABLE;
    if (place < 0 || place >= SYLLABLES) return character;
    return LEADING[Math.floor(place / SYLLABLES_OF_A_CONSONANT)];
  }).join("");
}

const plain = (text) => text.normalize("NFC").toLowerCase();

// What an instrument is found by, made once: lines of text.
export function searchText(isin, instrument) {
  const { code, name, english_name: english, market, sector } = instrument ?? {};
  const text = plain([isin, code, name, english, market, sector].join("\n"));
  return `${text}\n${consonants(text)}`;
}

// The words of a search; every one of them has to be found.
export function words(text) {
  return plain(text).split(/\s+/).filter(Boolean);
}

export function matches(text, wanted) {
  return wanted.every((word) => text.includes(word));
}
