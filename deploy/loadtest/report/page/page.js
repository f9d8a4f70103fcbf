// The report: what docs/load.md explains, section by section, of the JSON in the page.

const { result, verdict, limits, faultCount, balance, tradesPerRow, tradesPerItem, raised } = JSON.parse(document.getElementById("data").textContent);
const { outcome, capacity, comparison } = result;
const { books, feeding, kinds, seconds } = outcome;
const PROMPT = ["watch", "market", "sse"];
const sum = (values) => values.reduce((a, b) => a + b, 0);
const refused = sum(Object.values(books.refused));
const items = sum(kinds.map((kind) => kind.items));
const meanWithin = (points) => meanOf(measuredOf(outcome, seconds.at_ms, points).map(([, point]) => point));
const counted = (amounts) => Object.entries(amounts).sort(([a], [b]) => (a < b ? -1 : 1));

const MEANINGS = {
  "faults>0": "every client checks: no value goes back, no gap, no key twice, the final prices are right",
  "clients.unseen>0": "every window with news reached every prompt client",
  "ledger.problems>0": "read = published + superseded + stale + refused",
  "audit.differences>0": "the windows are what the trade log says they should be",
  lag: "from a window's end until a client had it",
  publish: "from a window's end until it was published",
  fanout: "from a window's publishing until a client had it",
  staleness: "for how long a newer trade than the one shown was in the log",
  feed: "from a trade's due time until the log had it",
  cpu: "of one core",
  machine: "all processes of the machine, of one core",
};
const KINDS = {
  watch: "a watch-list, read as fast as it comes",
  market: "the whole market, read as fast as it comes",
  sse: "a watch-list over server-sent events",
  slow: "pauses reading again and again",
  stalled: "stops reading after the first snapshot",
  reconnecting: "is cut off again and again, and resumes",
  polling: "asks over HTTP at fixed times",
};

function verdictSection() {
  const rows = verdict.checks.map(({ rule, text, is_broken }) => [
    rule,
    text,
    level(!is_broken, is_broken ? "broken" : "held"),
    MEANINGS[rule] ?? MEANINGS[rule.split(".")[0]] ?? "",
  ]);
  const heads = [["It fails if", "code"], ["Found", "number"], ["Verdict"], ["", "soft why"]];
  return element(
    "section",
    { class: "verdict panel", "data-level": verdict.is_good ? "ok" : "bad", "aria-labelledby": "verdict" },
    level(verdict.is_good),
    element(
      "div",
      { class: "says" },
      element("h2", { id: "verdict" }, verdict.headline),
      element("p", { class: "detail" }, prose(verdict.detail)),
      rows.length ? table("Thresholds", heads, rows) : null,
    ),
  );
}

function faultsSection() {
  const shown = outcome.faults.length;
  if (!shown) return null;
  const which = faultCount > shown ? `the first ${shown}:` : "all of them:";
  const about = `${plural(faultCount, "fault")} found by the checking clients and the run; ${which}`;
  return panel("faults", "Broken promises", about, wrong(outcome.faults));
}

function capacitySection() {
  if (!capacity) return null;
  const { steps, gave_way } = capacity;
  const most = Math.max(...steps.map(({ load }) => load));
  const box = element("div", { class: "plot", "data-plot": "capacity", role: "img", "aria-label": "Lag p99 by load; the table has the same." });
  drawn.push([box, (width) => lagByLoad(box, steps, width)]);
  const times = numbers("Lag p50", "Lag p99", "Publish p99", "Fan-out p99", "Feed behind", "Machine");
  const rows = steps.map((step) => [
    metered(bold(count(step.load)), step.load, most, step.is_good ? "good" : "bad"),
    level(step.is_good, step.is_good ? "held" : "broke"),
    ...[step.lag_p50_ms, step.lag_p99_ms, step.publish_p99_ms, step.fanout_p99_ms, step.behind_ms].map(duration),
    cores(step.machine_cpu),
    step.broken.join("; ") || NONE,
    step.busiest.join(", "),
  ]);
  return panel(
    "capacity",
    "Where it gives way",
    `${raised} were raised until a threshold broke, then narrowed down; steps in the order of their tries. The plot is lag p99 by load; CPU is of one core.`,
    box,
    table("Steps", [[raised], [""], ...times, ["What broke"], ["Busiest, share of a core"]], rows),
    says(bold("What gave way first: "), gave_way || "nothing", "."),
  );
}

function comparisonSection() {
  if (!comparison.length) return null;
  const most = (value) => Math.max(...comparison.map((way) => value(way) ?? 0));
  const stale = (way) => way.staleness_ms.mean ?? 0;
  const amount = (way) => way.bytes_per_client_s;
  const busy = (way) => way.gateway_cpu;
  const rows = comparison.map((way) => [
    bold(way.way),
    count(way.clients),
    metered(duration(way.staleness_ms.mean), stale(way), most(stale)),
    duration(way.staleness_ms.p99),
    metered(size(amount(way)), amount(way), most(amount)),
    rate(way.requests_per_s),
    rate(way.connections_per_s),
    metered(cores(busy(way)), busy(way), most(busy)),
  ]);
  const heads = numbers("Clients", "Staleness mean", "p99", "Bytes per client and s", "Requests/s", "New connections/s", "Gateway CPU");
  return panel(
    "comparison",
    "The same audience, served in different ways",
    "The same trades and watch-lists each time. A poll counts from the moment it was due. CPU is of one core.",
    table("Ways of serving", [["Way"], ...heads], rows),
  );
}

// Of what the rest of the page speaks, where that is not the one run.
function scope() {
  if (capacity) return element("p", { class: "soft" }, "Everything below is of the whole search, the loads that broke included.");
  if (comparison.length) return element("p", { class: "soft" }, "Everything below is of all ways of serving together.");
  return null;
}

function keyFigures() {
  const { lag_ms: lag, staleness_ms: stale } = outcome;
  const prompt = kinds.filter(({ kind }) => PROMPT.includes(kind));
  const taken = feeding.acknowledged >= feeding.due ? "in all" : `of ${count(feeding.due)} that fell due`;
  const merged = plural(sum(prompt.map((kind) => kind.merged_windows)), "window");
  const figures = [
    ["Lag", duration(lag.p99), "p99", `window's end to client; half within ${duration(lag.p50)}, longest ${duration(lag.max)}`],
    ["Staleness", duration(stale.mean), "mean", `a newer trade waits for its window; p99 ${duration(stale.p99)}`],
    ["Trades in", rate(feeding.seconds ? feeding.acknowledged / feeding.seconds : null), "a second",
      `${count(feeding.acknowledged)} ${taken}; p99 ${duration(feeding.behind_ms.p99)} from due to acknowledged`],
    ["Clients", count(mostOf(seconds.clients)), "at once",
      `${rate(meanWithin(seconds.frame_rate))} frames/s, ${size(meanWithin(seconds.byte_rate))}/s in all`],
    ["Reduction", `${ratio(tradesPerRow)}×`, "fewer rows",
      `trades read for each row published; a price sent stands for ${ratio(tradesPerItem)} trades`],
    ["Broken promises", count(faultCount), "faults",
      `for prompt clients ${merged} came merged, ${count(sum(prompt.map((kind) => kind.unseen)))} not at all`],
  ];
  const figure = ([title, big, unit, note]) =>
    element(
      "div",
      { class: "figure panel" },
      element("h3", null, title),
      element("p", null, bold(big), " ", element("span", null, unit)),
      element("p", { class: "soft" }, prose(note)),
    );
  return element("section", { class: "figures", "aria-label": "Key figures" }, figures.map(figure));
}

const HOW_TO_READ =
  "Times count from when measuring began; what is shaded was before or after. With the pointer over any plot, all of them tell that moment.";

function charts() {
  const plots = plotsOf(outcome);
  const span = spanOf(outcome, plots);
  const chart = (plot) => {
    const words = plot.lines.map((line) => lineInWords(outcome, plot, line));
    const spoken = plot.lines.map(({ name }, number) => `${name}: ${words[number]}`).join(" ");
    const box = element("div", { class: "plot", "data-plot": plot.name, role: "img", "aria-label": `${plot.title}. ${spoken}` });
    drawn.push([box, (width) => timeline(box, plot, shownLimits(limits, plot), span, width)]);
    const step = stepOf(plot.at.length);
    const thinned = step > 1 ? ` Each point is the ${plot.lines[0].keeps ?? "greatest"} of ${step} ${plot.per}.` : "";
    const legend = plot.lines.map(({ name, token, dash }, number) =>
      element(
        "li",
        null,
        drawing(
          `<svg viewBox="0 0 22 8" aria-hidden="true"><path d="M0 4h22" stroke-width="3" stroke="var(--${token})" stroke-dasharray="${dash?.join(" ") ?? "none"}"/></svg>`,
        ),
        bold(name),
        " ",
        element("span", null, prose(words[number])),
      ),
    );
    const made = panel(`chart ${plot.shape ?? "half"}`, plot.title, plot.about + thinned, box, element("ul", { class: "legend" }, legend));
    const heading = made.querySelector("h2");
    heading.id = `${plot.name}-title`;
    made.setAttribute("aria-labelledby", heading.id);
    return made;
  };
  if (!plots.length) return null;
  return [element("p", { class: "soft hint" }, HOW_TO_READ), element("div", { class: "charts" }, plots.map(chart))];
}

function kindsSection() {
  if (!kinds.length) return null;
  const saw = kinds.map((kind) => [
    [bold(kind.kind), element("span", { class: "soft what" }, KINDS[kind.kind] ?? "")],
    count(kind.clients),
    ...[kind.lag_ms.p50, kind.lag_ms.p99, kind.lag_ms.max, kind.staleness_ms.mean, kind.staleness_ms.p99].map(duration),
    count(kind.merged_windows),
    count(kind.unseen),
    kind.faults ? element("b", { class: "bad" }, count(kind.faults)) : count(kind.faults),
  ]);
  const took = kinds.map((kind) => [
    bold(kind.kind),
    count(kind.frames),
    count(kind.items),
    size(kind.bytes),
    ...[kind.connections, kind.resumed, kind.requests, kind.refused].map(count),
    counted(kind.closes).map(([code, times]) => `${code}: ${count(times)}`).join(", ") || "none",
  ]);
  const seen = numbers("Clients", "Lag p50", "p99", "longest", "Staleness mean", "p99", "Windows merged", "Never came", "Faults");
  const taken = numbers("Frames", "Prices", "Bytes", "Connections", "Resumed", "Requests", "Refused");
  return panel(
    "kinds",
    "By kind of client",
    "Lag and staleness above are of those that read promptly: watch, market and sse. The others are slow, cut off or patient on purpose.",
    table("What clients saw, by kind", [["Kind"], ...seen], saw),
    table("What clients took, by kind", [["Kind"], ...taken, ["Server closed"]], took),
  );
}

function ledgerSection() {
  const reasons = counted(books.refused).map(([reason, times]) => `${reason} ${count(times)}`).join(", ");
  const parts = [
    ["published", books.published, "accent", "the newest of its issue and window"],
    ["superseded", books.superseded, "line-strong", "older, in the same window"],
    ["stale", books.stale, "amber", "older than what was published before"],
    ["refused", refused, "red", reasons || "broken trades; there was none"],
  ];
  const total = sum(parts.map(([, trades]) => trades));
  const share = (trades) => {
    if (!total) return NONE;
    // What is there is never written as nothing.
    return trades > 0 && trades < total / 2_000 ? "under 0.1%" : `${((trades * 100) / total).toFixed(1)}%`;
  };
  const rows = parts.map(([name, trades, token, what]) => [
    [element("i", { class: "dot", style: `background: var(--${token})` }), name],
    count(trades),
    share(trades),
    what,
  ]);
  // What is there stays visible, however small.
  const pieces = parts
    .filter(([, trades]) => trades)
    .map(([, trades, token]) => element("i", { style: `flex: ${trades} 1 2px; background: var(--${token})` }));
  const sent = items ? `; the ${count(items)} prices sent stand for ${ratio(tradesPerItem)} trades each` : "";
  return panel(
    "ledger",
    "The ledger",
    "What became of every trade that was read during the run, by the product's own books: nothing is dropped without being counted.",
    total ? element("div", { class: "bar", "aria-hidden": "true" }, pieces) : null,
    table("Ledger", [[""], ...numbers("Trades", "Share"), ["", "soft"]], rows, [
      "read",
      count(books.read),
      "",
      level(!books.problems.length, balance),
    ]),
    wrong(books.problems),
    says(bold("Reduction: "), `${ratio(tradesPerRow)} trades in for each row published in ${plural(books.windows, "window")}${sent}.`),
  );
}

function auditSection() {
  const { audit } = outcome;
  if (!audit) return panel("audit", "Audit", "The trade log was not read again after this run.");
  const total = audit.difference_count;
  const rest = total - audit.differences.length;
  const compared = `${plural(audit.trades, "trade")} of ${plural(audit.issues, "issue")} in ${plural(audit.windows, "window")} compared: `;
  return panel(
    "audit",
    "Audit",
    "After the run the trade log was read again, every trade judged by the documented rules, and each window compared with what was published.",
    says(compared, level(!total, total ? plural(total, "difference") : "no difference")),
    wrong(rest ? [...audit.differences, `and ${count(rest)} more`] : audit.differences),
  );
}

function processesSection() {
  if (!outcome.processes.length) return panel("processes", "Processes", "None was measured: what was tested ran elsewhere.");
  const [width, height] = [220, 30];
  const spark = (points, most, token) =>
    drawing(
      `<svg class="spark" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" style="stroke: var(--${token})" aria-hidden="true">` +
        `${sparkPaths(points, most ?? 0, width, height).map((path) => `<path d="${path}"/>`).join("")}</svg>`,
    );
  const mebibytes = (amount) => size(isKnown(amount) ? amount * 2 ** 20 : null);
  const ordered = [...outcome.processes].sort((a, b) => a.is_ours - b.is_ours);
  const most = Math.max(0, ...ordered.map(({ cpu }) => mostOf(cpu) ?? 0));
  const rows = ordered.map(({ name, is_ours, cpu, memory_mib: memory }) => [
    [bold(name), element("span", { class: "soft what" }, is_ours ? "load test" : "tested")],
    cores(meanOf(cpu)),
    cores(mostOf(cpu)),
    spark(cpu, most, is_ours ? "amber" : "accent"),
    mebibytes(memory.find(isKnown)),
    mebibytes(mostOf(memory)),
    spark(memory, mostOf(memory), "line-strong"),
  ]);
  const over = ["over the run", "spark"];
  return panel(
    "processes",
    "Processes",
    `CPU is a share of one core, drawn on one scale for all, from 0 to ${cores(most)}. Memory is drawn from 0 to the most of its process.`,
    table("Processes", [["Process"], ...numbers("CPU mean", "most"), over, ...numbers("Memory at first", "most"), over], rows),
  );
}

function schedule() {
  const { behind_ms: behind } = feeding;
  const appends = behind.count
    ? `, half of the appends within ${duration(behind.p50)} of their due time, 99 of 100 within ${duration(behind.p99)}, all within ${duration(behind.max)}`
    : "";
  const others = [
    [feeding.retried, "appends tried again"],
    [sum(Object.values(feeding.refused)), "refused before the log"],
    [feeding.dropped_at_cap, "dropped at the log's cap"],
  ].filter(([times]) => times).map(([times, what]) => ` ${count(times)} ${what}.`);
  return `The feed (${feeding.words}) is an open loop: each trade has a due time, set before the run, and the schedule never waits for the system. A trade that could not be appended in time is appended as soon as possible, and its delay is part of the report. ${count(feeding.due)} trades fell due, ${count(feeding.acknowledged)} were acknowledged by the log${appends}.${others.join("")}`;
}

function ownShare() {
  const means = knownOf(outcome.processes.filter(({ is_ours }) => is_ours).map(({ cpu }) => meanOf(cpu)));
  if (!means.length) return "How much is not known: its processes were not measured.";
  return `Its processes, marked as such in the table, used ${cores(sum(means))} of one core on average. Where they share the machine with what is tested, the machine was that much smaller than it looks.`;
}

function methodSection() {
  const paragraphs = [
    ["Trades come in by a schedule.", schedule()],
    ["Nothing that was slow is left out.",
      "A test that waits for an answer before it asks again measures least while the system is slowest (coordinated omission). Here nobody waits: every window with news for a client is due to it, and counts from the window's own end until it came, also if it came merged with others, late, or only after a reconnect. One that never came counts up to the end of the run. A poll counts from the moment it was due, not from when it could be sent."],
    ["Lag begins when a window ends.",
      `A window lasts ${duration(result.window_ms)}, and its trades are published after its end. Lag is the time from that end until a client had the frame in hand; publishing is a part of it. How long a trade waited within its window is in the staleness.`],
    ["Staleness is what a viewer sees.",
      "At random moments, for a random key of a random client: for how long a trade newer than the one shown had been in the log; zero while there was none. Even a perfect system has up to one window of it."],
    ["Every client is a checker.",
      "No value may go back, no window may be missing from a key's count of trades, no key may come twice in a frame, and the last price of every issue must be the reference's. One fault fails the run."],
    ["Percentiles are values that occurred.",
      "By nearest rank over all samples of all prompt clients, never an average of averages. Where a plot has more points than room, the greatest of each stretch is drawn (of connected clients the fewest): no peak is lost, and the middle looks worse than it was."],
    ["The load test itself needs CPU.", ownShare()],
  ];
  const facts = [
    ["Command", result.command, "code"],
    ["Machine and versions", result.machine],
    ["Began", moment(result.began_ms)],
    ["Measured", `${duration(outcome.to_ms - outcome.from_ms)} from ${moment(outcome.from_ms)}`],
    ["Ended", moment(result.ended_ms)],
    ["Window", duration(result.window_ms)],
    ["Fed", feeding.words],
    ["Format of the data", `version ${result.version}`],
  ];
  return panel(
    "method",
    "How this was measured",
    "",
    element("div", { class: "prose" }, paragraphs.map(([title, text]) => element("p", null, bold(title), " ", prose(text)))),
    element("dl", { class: "facts" }, facts.map(([name, value, look]) =>
      element("div", null, element("dt", null, name), element("dd", { class: look }, value)))),
  );
}

const drawn = []; // Boxes, and what draws in them once they have a width.
const main = document.querySelector("main");
document.querySelector(".when").textContent = moment(outcome.from_ms);
main.replaceChildren(
  ...[
    verdictSection(), faultsSection(), capacitySection(), comparisonSection(), scope(), keyFigures(), charts(),
    kindsSection(), element("div", { class: "pair" }, ledgerSection(), auditSection()), processesSection(), methodSection(),
  ].flat().filter(isKnown),
);
drawn.forEach(([box, draw]) => drawIn(box, draw));

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
dark.addEventListener("change", drawAgain);
const button = document.getElementById("theme");
button.hidden = false;
button.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  drawAgain();
});

// Paper is white.
let chosen;
addEventListener("beforeprint", () => {
  chosen = root.dataset.theme;
  root.dataset.theme = "light";
  drawAgain();
});
addEventListener("afterprint", () => {
  if (chosen) root.dataset.theme = chosen;
  else delete root.dataset.theme;
  drawAgain();
});
