// How Korean is searched for: by first consonants, and by a word that is still being typed. Pure.

const LEADING = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ";
const FINAL = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ";
const FIRST_SYLLABLE = 0xac00;
const SYLLABLES = 11_172;
const SYLLABLES_OF_A_CONSONANT = 588;

// Which syllable a character is, counted from 가; -1: none.
function syllableOf(character) {
  const place = character.codePointAt(0) - FIRST_SYLLABLE;
  return place < SYLLABLES ? Math.max(place, -1) : -1;
}

const written = (syllable) => String.fromCodePoint(FIRST_SYLLABLE + syllable);

// "삼성전자" -> "ㅅㅅㅈㅈ"; other characters stay.
export function consonants(text) {
  return Array.from(text, (character) => {
    const syllable = syllableOf(character);
    return syllable < 0 ? character : LEADING[Math.floor(syllable / SYLLABLES_OF_A_CONSONANT)];
  }).join("");
}

// What finds a word while its last syllables are being typed: "삼ㅅ", "삼서" and "삼성ㅈ" find
// 삼성전자, and so does "삼선", whose ㄴ may yet begin the next syllable of "삼서나". A text, or
// a RegExp where a text is not enough.
export function typed(word) {
  const characters = Array.from(word);
  if (characters.every((character) => syllableOf(character) < 0)) return word;
  return new RegExp(characters.map((character, place) => pattern(character, place === characters.length - 1)).join(""));
}

function pattern(character, isLast) {
  const leading = LEADING.indexOf(character);
  if (leading >= 0) return `[${character}${begunWith(leading)}]`;
  const syllable = syllableOf(character);
  if (syllable < 0) return character.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  if (!isLast) return character;
  const final = syllable % FINAL.length;
  if (final === 0) return `[${character}-${written(syllable + FINAL.length - 1)}]`;
  const next = LEADING.indexOf(FINAL[final]);
  return next < 0 ? character : `(?:${character}|${written(syllable - final)}[${begunWith(next)}])`;
}

// The syllables that begin with a consonant, as a range.
function begunWith(leading) {
  const first = leading * SYLLABLES_OF_A_CONSONANT;
  return `${written(first)}-${written(first + SYLLABLES_OF_A_CONSONANT - 1)}`;
}
