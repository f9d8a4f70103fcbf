// Questions to the gateway. An answer that says no is an Answer, too; none is a NoAnswer.

const TOKEN = "tickthrottle.operator";
const PATIENCE_MS = 5_000;

export class NoAnswer extends Error {}

// Kept as long as the tab is open, and sent to nobody but this gateway.
export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  put: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

// Returns {status, isOk, body}, the body null if it is empty or no JSON.
export async function ask(path, { method = "GET" } = {}) {
  const held = token.get();
  let answer, text;
  try {
    answer = await fetch(path, {
      method,
      headers: held === null ? {} : { Authorization: `Bearer ${held}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
      cache: "no-cache",
    });
    text = await answer.text();
  } catch (error) {
    throw new NoAnswer(String(error.message ?? error));
  }
  return { status: answer.status, isOk: answer.ok, body: read(text) };
}

function read(text) {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

// What a refused question was answered with, in one sentence.
export function complaint({ status, body }) {
  return body?.detail ?? body?.title ?? `the gateway answered ${status}`;
}
