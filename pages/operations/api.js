// Questions to the gateway. Each has an answer: one that says no, or that none came.

import { say } from "../language.js";

const TOKEN = "tickthrottle.operator";
const PATIENCE_MS = 5_000;

// Kept as long as the tab is open, and sent to nobody but this gateway.
export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  put: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

// Returns {status, isOk, body}, the body null if it is empty or no JSON; the status is null
// if the gateway has not answered in time.
export async function ask(path, { method = "GET" } = {}) {
  const held = token.get();
  try {
    const answer = await fetch(path, {
      method,
      headers: held === null ? {} : { Authorization: `Bearer ${held}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
      cache: "no-cache",
    });
    return { status: answer.status, isOk: answer.ok, body: read(await answer.text()) };
  } catch {
    return { status: null, isOk: false, body: null };
  }
}

function read(text) {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

// What a question without a good answer was answered with, in one sentence.
export function complaint({ status, body }) {
  if (status === null) return say("The gateway has not answered this in time.");
  return body?.detail ?? body?.title ?? say("the gateway answered {status}", { status: String(status) });
}
