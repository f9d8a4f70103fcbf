// What an instrument is called in the language of the page, as far as the instrument table says.
// Pure, but for the one language that a page has.

import { language } from "../language.js";

const isEnglish = (instrument) => language() === "en" && Boolean(instrument?.english_name);

export const nameOf = (instrument, isin) => (isEnglish(instrument) ? instrument.english_name : instrument?.name) ?? isin;

// In which language that is: names are those of Korean lists, mostly.
export const langOf = (instrument) => (isEnglish(instrument) ? "en" : "ko");

// What there is to say of it beside its name.
export const aboutText = (instrument, ...more) =>
  [instrument?.code, ...more, instrument?.market, instrument?.sector].filter(Boolean).join(" · ");
