// Server-sent events read with fetch: an EventSource can show no token.

const AGAIN_MS = 2_000;

// Yields each message of an event stream, until it ends. Throws Error with the problem's
// detail, and its status, if there is none.
export async function* messages(path, { headers, signal }) {
  const response = await fetch(path, { headers, signal, cache: "no-store" });
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    const text = problem.detail ?? `${path} answered ${response.status}`;
    throw Object.assign(new Error(text), { status: response.status });
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) yield JSON.parse(event.slice("data: ".length));
  }
}

// Follows an event stream again and again while the page is looked at: a hidden page asks
// for nothing. `onProblem(text, status)` is told why it is not there, null once it is.
// Returns {now}, which tries at once.
export function follow(path, { headers, onMessage, onProblem }) {
  let timer;
  let ended = null;

  async function run() {
    clearTimeout(timer);
    ended?.abort();
    if (document.hidden) return;
    const { signal } = (ended = new AbortController());
    try {
      for await (const message of messages(path, { headers: headers(), signal })) {
        if (signal.aborted) return;
        onMessage(message);
      }
      if (!signal.aborted) onProblem("The connection is lost, reconnecting.");
    } catch (error) {
      if (signal.aborted) return;
      const isAnswer = error.status !== undefined;
      onProblem(isAnswer ? error.message : "The gateway does not answer.", error.status);
      // A port that has none will have none in two seconds.
      if ([401, 403, 404].includes(error.status)) return;
    }
    if (!signal.aborted) timer = setTimeout(run, AGAIN_MS);
  }

  document.addEventListener("visibilitychange", run);
  run();
  return { now: run };
}
