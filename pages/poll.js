// Does something again and again, never twice at a time, and only while it is looked at.

// `step` returns a promise; the next one starts `everyMs` after this one has started, or
// when it has ended, whichever is later. Returns {now}, which takes the next step at once.
export function poll(step, everyMs, { page = document, clock = performance } = {}) {
  let timer;
  let isRunning = false;
  let isWanted = false;

  async function run() {
    clearTimeout(timer);
    isWanted = isRunning;
    if (isRunning || page.hidden) return;
    isRunning = true;
    const startedMs = clock.now();
    try {
      await step();
    } finally {
      isRunning = false;
      const leftMs = isWanted ? 0 : Math.max(0, startedMs + everyMs - clock.now());
      if (!page.hidden) timer = setTimeout(run, leftMs);
    }
  }

  page.addEventListener("visibilitychange", () => (page.hidden ? clearTimeout(timer) : run()));
  run();
  return { now: run };
}
