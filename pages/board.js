// The market board: every instrument of the stream. This file holds what changes and the
// line to the gateway; board/page.js draws it, the other files of board/ are its rules.
//
// For each window it leaves a performance measure "window-update": for how long the main
// thread was busy with it, from reading the message to the end of the frame that shows it.

import { h, render } from "preact";

import { isBare, instrumentOf, viewOf, VIEWS, withInstrument, withView } from "./board/address.js";
import { signal, wakeSound } from "./board/alerts/signals.js";
import { Alerts } from "./board/alerts/watcher.js";
import { toldText } from "./board/alerts/words.js";
import { getMovers } from "./board/candles/bar_feed.js";
import { INTERVALS } from "./board/candles/bars.js";
import { activeList, listsText, parseLists } from "./board/choice/lists.js";
import { choiceText, layoutFor, NO_WIDTHS, orderAmong, parseChoice, widest } from "./board/columns.js";
import { OpenCharts } from "./board/grid/open_charts.js";
import { AT_ONCE } from "./board/grid/pages.js";
import { onKeys } from "./board/keys.js";
import { CONNECTED, Line } from "./board/line.js";
import { dayMovers } from "./board/movers/day.js";
import { readBursts, readMoves, SHOWN } from "./board/movers/recent.js";
import { nameOf } from "./board/names.js";
import { ORDERS, nextOrder } from "./board/order.js";
import { Page, Stops } from "./board/page.js";
import { Selection } from "./board/selection.js";
import { readInstruments, Store } from "./board/store.js";
import { afterFrame, noteMeasure } from "./board/views/measure.js";
import { toggled } from "./board/watchlist.js";
import { language, say } from "./language.js";
import { poll } from "./poll.js";
import { createShell, getJson, getNews, onWords, storage, streamUrl, token } from "./shell.js";
import { TickClient } from "./tick.js";
import { zone } from "./times.js";

const JUDGED_EVERY_MS = 500;
const NAMES_EVERY_MS = 10_000;
const HOURS_EVERY_MS = 10_000;
const MOVERS_EVERY_MS = 10_000;
const DAY_MOVERS_EVERY_MS = 4_000;
const EVENTS_EVERY_MS = 10_000;
const TRENDS_AGAIN_MS = 5_000; // where there are none yet
const EVENTS_RARELY_MS = 60_000; // where there are none
const MOST_BURSTS = 500; // of which alerts are told
const WINDOWS = "2s"; // what a visitor chose who wants no candles
const HELD_MS = 3_000;
const SETTLED_MS = 150;
const LEFT_MS = 1_000;
const MEASURE = "window-update";
const MAIN = "table[role=grid], #map [role=listbox], #charts";

// Beside the table there is room for an instrument; else it lies over it. On a wide screen the
// room is always there: until a visitor opens one it shows another, which no address names.
const beside = matchMedia("(min-width: 72rem)");
const wide = matchMedia("(min-width: 120rem)");

const shell = createShell({
  page: "board",
  withPriceColours: true,
  onRetry: () => ticks.reconnect(),
});
const store = new Store();
const line = new Line();

const view = {
  store,
  rows: [],
  areNamesAwaited: true,
  search: "",
  chosenOrder: { column: "turnover", direction: ORDERS.turnover.first },
  columnChoice: parseChoice(storage.read("columns")),
  widthRem: 0, // of the table
  leaders: new Set(), // the most traded, whose charts are shown where no stock is starred
  widths: NO_WIDTHS, // of the widest figures that were in view since the visitor's last choice
  get layout() {
    const { columnChoice: choice, widths } = view;
    return layoutFor(view.widthRem, store.instruments.size > 0, { hasSums: store.hasSums, choice, widths });
  },
  get order() {
    return orderAmong(view.layout, view.chosenOrder);
  },
  lists: parseLists(storage.read("watch-lists"), storage.read("watch-list")),
  get watched() {
    return activeList(view.lists);
  },
  filters: { markets: new Set(), sectors: new Set() },
  // Which view is shown: "table", "map", "charts"; of the map, which group alone.
  place: { name: VIEWS.includes(storage.read("view")) ? storage.read("view") : "table", group: null },
  menu: null, // which is open: "columns", "lists", "alerts"
  isWatchListOnly: storage.read("watch-list-only") === "yes",
  selection: null,
  standing: null, // a selection as well, that nobody made
  get opened() {
    return view.selection ?? view.standing;
  },
  strangeLink: null, // what the address calls an instrument, if none is called so
  get isSheet() {
    return view.selection !== null && !beside.matches;
  },
  lagMs: null,
  get windowMs() {
    return line.windowMs;
  },
  heardMs: null,
  isLive: false,
  problem: null,
  movers: null, // the newest lists; null: the gateway has none, or none was asked for yet
  areMoversKnown: false, // or known not to be there
  dayMovers: null, // the same of the day, in their place
  bursts: [], // the newest, newest first
  moves: [],
  hours: [], // of each market whose hours are known
  clock: () => Date.now() + ticks.clockSkewMs,
  hold: () => (heldUntilMs = performance.now() + HELD_MS),
  setSearch: (search) => choose({ search }),
  openFirst: () => view.search && view.rows.length && view.select(view.rows[0].isin),
  enterSearch: search,
  enterMain: () => focusOn(MAIN),
  enterDetail: () => focusOn("#detail-title"),
  setOrder: (column) => choose({ chosenOrder: nextOrder(view.order, column) }),
  setWidth: (widthRem) => widthRem !== view.widthRem && choose({ widthRem }),
  setFigures(shown) {
    const widths = widest(view.widths, shown);
    if (widths === view.widths) return;
    view.widths = widths;
    draw();
  },
  toggleWatchListOnly() {
    choose({ isWatchListOnly: !view.isWatchListOnly });
    storage.write("watch-list-only", view.isWatchListOnly ? "yes" : null);
  },
  star(isin) {
    const { active, lists } = view.lists;
    view.setLists({ active, lists: new Map([...lists, [active, toggled(view.watched, isin)]]) });
  },
  setLists(lists) {
    choose({ lists });
    storage.write("watch-lists", listsText(lists));
  },
  setColumns(columnChoice) {
    choose({ columnChoice });
    storage.write("columns", choiceText(columnChoice));
  },
  toggleMarket: (name) => setFilter("markets", name === null ? new Set() : toggled(view.filters.markets, name)),
  toggleSector: (name) => setFilter("sectors", toggled(view.filters.sectors, name)),
  openMenu: (menu) => choose({ menu }),
  closeMenu: () => choose({ menu: null }),
  chooseChart(interval) {
    storage.write("chart", interval ?? WINDOWS);
    view.opened?.feed.followDay();
    view.opened?.feed.choose(interval);
    view.charts.choose();
    draw();
  },
  chartInterval: () => chart() ?? null,
  showView: (name) => name !== view.place.name && goTo({ name, group: null }),
  showGroup: (group) => (group === null ? leaveGroup() : goTo({ name: "map", group })),
  select,
  close,
};

// A hidden page draws nothing, but prices come: they are what alerts go by.
const alerts = (view.alerts = new Alerts({
  storage,
  itemOf: (isin) => ticks.items.get(isin),
  closeOf: (isin) => store.instruments.get(isin)?.prev_close,
  onTold: signalTold,
  onChange: draw,
}));

function signalTold(told) {
  const texts = told.map((alert) => {
    const text = toldText(alert, nameOf(store.instruments.get(alert.isin), alert.isin));
    return { id: alert.id, isin: alert.isin, text };
  });
  signal(texts, select);
}

// Candles are shown if there are any, unless the visitor chose otherwise.
function chart() {
  const chosen = storage.read("chart");
  if (chosen === WINDOWS) return view.movers === null ? undefined : null;
  if (chosen in INTERVALS) return chosen;
  return view.movers === null ? undefined : "1m";
}

// Rows do not move away from under a visitor's hand.
let heldUntilMs = 0;
let isPaintDue = false;
let busyMs = 0; // reading messages that were not painted yet
let isWindowDue = false;

let settling; // timer of a selection that may be gone again at once
let leaving = null; // timer of a step back that has not come yet
let next = null; // what is to be done after it

const ticks = new TickClient(streamUrl(), {
  token,
  onState(kind, text) {
    const before = line.link.kind;
    line.link = { kind, text };
    judgeLine();
    if (CONNECTED.has(kind)) askForNames();
    if (kind !== "live" || line.link.kind === before) return;
    movers.now();
    keepEvents();
    hours.now();
    keepTrends();
  },
  onReset() {
    store.clear();
    view.dayMovers = null;
    keepTrends();
    paintSoon();
  },
  onMessage: heard,
  onBarsMissed() {
    view.opened?.feed.load();
    view.charts.load();
  },
  onRejected([{ message }]) {
    view.problem = say("The gateway does not give every stock: {message}.", { message });
    paintSoon();
  },
});

view.charts = new OpenCharts({ ticks, interval: chart, onChange: paintSoon });

function heard(message, tookMs) {
  if (message.type === "statuses" || message.type === "welcome") {
    store.setStatuses(ticks.statuses);
    paintSoon();
  }
  if (!line.hear(message, ticks.clockSkewMs)) return;
  view.heardMs = view.clock();
  if (message.type === "heartbeat" && message.window !== null) store.hear(message.window);
  if (message.type !== "heartbeat") alerts.judge(message);
  if (message.type === "update") {
    store.count(message);
    view.lagMs = Math.max(0, view.clock() - message.window); // two clocks never agree to the ms
    busyMs += tookMs;
    isWindowDue = true;
  }
  paintSoon();
}

// All of a frame's items come in a row: they are drawn in the frame they come in.
function put(item, window) {
  store.put(item, window);
  if (item.isin === view.opened?.isin) view.opened.put(item, window);
  view.charts.put(item, window);
  if (isPaintDue === "now") return;
  isPaintDue = "now";
  const beganMs = performance.now();
  queueMicrotask(() => paint(beganMs));
}

function paintSoon() {
  if (isPaintDue) return;
  isPaintDue = "soon";
  requestAnimationFrame((beganMs) => isPaintDue === "soon" && paint(beganMs));
}

function paint(beganMs) {
  isPaintDue = false;
  const isDayDue = view.areMoversKnown && view.movers === null && store.all.length > 0;
  if (isDayDue && !(beganMs - view.dayMovers?.madeMs < DAY_MOVERS_EVERY_MS)) {
    view.dayMovers = { ...dayMovers(store.all), timeMs: store.newestMs, madeMs: beganMs };
  }
  view.rows = inOrder(store.select(question()));
  draw();
  if (!isWindowDue) return;
  isWindowDue = false;
  const readMs = busyMs;
  busyMs = 0;
  afterFrame(() => noteMeasure(MEASURE, readMs + performance.now() - beganMs));
}

function question() {
  const { search, order, watched, isWatchListOnly, filters, place } = view;
  const isCharts = place.name === "charts";
  if (isCharts && !watched.size) return { order, watched: mostTraded({ search, filters }) };
  return { search, order, filters, watched: isWatchListOnly || isCharts ? watched : null };
}

// What charts show without a watch-list. They stay the same until the visitor asks for others.
function mostTraded(wanted) {
  if (view.leaders.size < AT_ONCE) {
    const order = { column: store.hasSums ? "turnover" : "trades", direction: "descending" };
    view.leaders = new Set(store.select({ ...wanted, order }).slice(0, AT_ONCE).map(({ isin }) => isin));
  }
  return view.leaders;
}

function inOrder(found) {
  if (performance.now() > heldUntilMs) return found;
  const places = new Map(view.rows.map(({ isin }, place) => [isin, place]));
  const place = ({ isin }) => places.get(isin) ?? places.size;
  return found.sort((a, b) => place(a) - place(b));
}

function draw() {
  keepStanding();
  // In other words it is another page: everything is drawn anew.
  const key = `${language()} ${zone()}`;
  render(h(Stops, { view }), document.getElementById("stops"));
  render(h(Page, { key, view }), document.getElementById("board"));
  const { isin } = view.selection ?? {};
  const page = say("tickthrottle: market board");
  const told = alerts.notices.length ? `(${alerts.notices.length}) ` : "";
  const title = told + (isin === undefined ? page : `${nameOf(store.instruments.get(isin), isin)} · ${page}`);
  if (document.title !== title) document.title = title;
}

// A visitor's choice is followed at once, whatever was held.
function choose(changes) {
  Object.assign(view, { widths: NO_WIDTHS, leaders: new Set() }, changes);
  view.rows = store.select(question());
  draw();
}

function setFilter(kind, names) {
  choose({ filters: { ...view.filters, [kind]: names } });
}

// A view is in the address, in a step of the history of its own, and so is a group of the
// map. It takes the place of an open instrument.
function goTo(place) {
  if (leaving !== null) {
    next = () => goTo(place);
    return;
  }
  const isOwn = place.group !== null && view.place.name === "map";
  const step = view.selection !== null && history.state?.isOwn ? "replaceState" : "pushState";
  history[step]({ isOwn }, "", addressOf(place));
  follow();
}

function leaveGroup() {
  if (leaving !== null) {
    next = leaveGroup;
    return;
  }
  view.place = { name: "map", group: null };
  leave();
}

function showPlace(place) {
  const { name, group } = view.place;
  if (name !== place.name) storage.write("view", place.name === "table" ? null : place.name);
  if (name !== place.name || group !== place.group) choose({ place });
}

// The open instrument is in the address, in a step of the history of its own: Back closes it.
function select(isin) {
  if (leaving !== null) {
    next = () => select(isin);
  } else if (view.selection?.isin === isin) {
    focusOn("#detail-title");
  } else if (view.selection === null) {
    history.pushState({ isOwn: true, under: view.place }, "", addressWith(isin));
    show(isin);
    view.selection.start();
  } else {
    show(isin);
    // A key that is held down goes by many instruments.
    settling = setTimeout(() => {
      history.replaceState(history.state, "", addressWith(isin));
      view.selection.start();
    }, SETTLED_MS);
  }
}

function close() {
  if (view.selection === null) return false;
  hide();
  leave();
  return true;
}

// Go back to the step before, or put the place in this one's.
function leave() {
  if (history.state?.isOwn) {
    leaving = setTimeout(forget, LEFT_MS); // there may be nowhere to go
    history.back();
  } else {
    forget();
  }
}

function forget() {
  history.replaceState(null, "", addressOf(view.place));
  arrive();
}

function arrive() {
  clearTimeout(leaving);
  leaving = null;
  follow();
  const then = next;
  next = null;
  then?.();
}

// The address says which view is shown, or which instrument is open in the view there is.
function follow() {
  showPlace(viewOf(location.hash) ?? history.state?.under ?? view.place);
  const link = instrumentOf(location.hash);
  const isin = link === null ? null : store.isinOf(link);
  view.strangeLink = isin === null && areNamesKnown ? link : null;
  if (isin === (view.selection?.isin ?? null)) return draw();
  if (isin === null) return hide();
  show(isin);
  view.selection.start();
}

const addressWith = (isin) => location.pathname + location.search + withInstrument(location.hash, isin);
const addressOf = (place) => location.pathname + location.search + withView(location.hash, place);

function show(isin) {
  clearTimeout(settling);
  view.strangeLink = null;
  view.selection?.stop();
  view.selection = selectionOf(isin);
  draw();
}

function selectionOf(isin) {
  const windowMs = () => line.windowMs;
  const options = { clock: view.clock, windowMs, onChange: paintSoon, ticks, chart };
  const selection = new Selection(isin, options);
  const row = store.rows.get(isin);
  if (row !== undefined) selection.put(row.item, row.window);
  return selection;
}

// What stands beside the rows: the one stock that a search has found, else, on a wide screen, what
// has stood there, or the first row's.
function standingIsin() {
  if (view.selection !== null || !beside.matches) return null;
  const [first = null, ...others] = view.rows;
  if (view.search && first !== null && !others.length) return first.isin;
  return wide.matches ? (view.standing ?? first)?.isin ?? null : null;
}

function keepStanding() {
  const isin = standingIsin();
  if (isin === (view.standing?.isin ?? null)) return;
  view.standing?.stop();
  view.standing = isin === null ? null : selectionOf(isin);
  view.standing?.start();
}

function hide() {
  clearTimeout(settling);
  view.selection.stop();
  view.selection = null;
  draw();
  focusOn(MAIN);
}

function focusOn(selector) {
  document.querySelector(selector)?.focus({ preventScroll: true });
}

// From the open instrument to the one above or below it.
function step(by) {
  if (view.selection === null) return false;
  const place = view.rows.findIndex(({ isin }) => isin === view.selection.isin);
  view.hold();
  const next = view.rows[place + by];
  if (place >= 0 && next !== undefined) select(next.isin);
  return true;
}

function search() {
  if (view.isSheet) close();
  focusOn("#search");
  document.getElementById("search").select();
  return true;
}

function judgeLine() {
  const { kind, ...about } = line.judge(ticks.retryAtMs);
  shell.setState(kind, about);
  if (view.isLive === (kind === "live")) return;
  view.isLive = kind === "live";
  paintSoon();
}

// The board is complete without names. With a token they wait until the stream has taken
// it: one refusal is enough.
let areNamesAskedFor = false;
let areNamesKnown = false; // or known not to come

async function askForNames() {
  if (areNamesAskedFor) return;
  areNamesAskedFor = true;
  try {
    await renewNames();
  } catch (error) {
    // Without an answer there will be another chance, with the next connection.
    areNamesAskedFor = error.status !== undefined;
  }
  areNamesKnown = areNamesAskedFor;
  view.areNamesAwaited = false;
  paintSoon();
  if (view.selection === null) follow();
}

// Returns what asks for what is at a path, and takes it if it is another one than before; it
// returns whether it is.
function newsOf(path, take, read) {
  let tag = null;
  return async () => {
    const news = await getNews(path, tag, read);
    if (news === null) return false;
    tag = news.tag;
    take(news.json);
    return true;
  };
}

// Has `ask` called every so often while somebody looks and the line is there; it returns whether
// there is anything new.
const kept = (ask, everyMs) =>
  poll(async () => {
    if (!CONNECTED.has(line.link.kind)) return;
    try {
      if (await ask()) paintSoon();
    } catch {
      // It is asked again.
    }
  }, everyMs);

// Names, previous closes and halts change while the page is open.
const renewNames = newsOf("v1/instruments", ({ data }) => store.setInstruments(data), readInstruments);
kept(async () => areNamesKnown && renewNames(), NAMES_EVERY_MS);

// Which markets are closed: at once, and as they open and close.
const hours = kept(newsOf("v1/market-hours", ({ data }) => (view.hours = data)), HOURS_EVERY_MS);

// A gateway without movers has no bars either, most likely.
async function renewMovers() {
  const found = await getMovers();
  const isNews = view.movers === null && found !== null;
  Object.assign(view, { movers: found, areMoversKnown: true });
  if (isNews) {
    view.opened?.followBars();
    view.charts.choose();
  }
  return true;
}
const movers = kept(renewMovers, MOVERS_EVERY_MS);

// Bursts and moves are on no stream. A hidden page asks for bursts as well if there are
// alerts of them: that is when those are needed. Whoever asks while an answer is awaited
// gets one that was asked for afterwards.
let areEventsAskedFor = false;
let areEventsAskedAgain = false;
let eventsAskedMs = -Infinity;

async function keepEvents() {
  const isForAlerts = alerts.hasBursts;
  if (!CONNECTED.has(line.link.kind) || (document.hidden && !isForAlerts)) return;
  areEventsAskedAgain = areEventsAskedFor;
  if (areEventsAskedFor) return;
  areEventsAskedFor = true;
  eventsAskedMs = performance.now();
  const ask = (path, read) => getJson(path, { read, cache: "no-cache" });
  try {
    const most = isForAlerts ? MOST_BURSTS : SHOWN;
    const bursts = await ask(`v1/bursts?limit=${most}`, readBursts);
    if (isForAlerts) alerts.judgeBursts(bursts);
    view.bursts = bursts.slice(0, SHOWN);
    if (!document.hidden) view.moves = await ask(`v1/moves?limit=${SHOWN}`, readMoves);
    paintSoon();
  } catch {
    // It is asked again.
  }
  areEventsAskedFor = false;
  if (areEventsAskedAgain) keepEvents();
}

function keepEventsCalmly() {
  const areThere = view.bursts.length || view.moves.length || alerts.hasBursts;
  if (areThere || performance.now() - eventsAskedMs >= EVENTS_RARELY_MS) keepEvents();
}

// How prices have gone before the page was open, and while it had no connection.
let trendsTag = null;
let trendsAgain; // timer

async function keepTrends() {
  clearTimeout(trendsAgain);
  try {
    const news = await getNews("v1/trends", trendsTag);
    if (news === null) return;
    // A gateway that has just started is still looking back.
    if (news.json.end === null) trendsAgain = setTimeout(keepTrends, TRENDS_AGAIN_MS);
    else trendsTag = news.tag;
    store.setTrends(news.json);
    paintSoon();
  } catch {
    // Lines then begin with what the page sees.
  }
}

document.addEventListener("visibilitychange", keepEvents);
setInterval(keepEventsCalmly, EVENTS_EVERY_MS);
setInterval(judgeLine, JUDGED_EVERY_MS);
addEventListener("popstate", arrive);
beside.addEventListener("change", draw);
wide.addEventListener("change", draw);
onWords(() => {
  judgeLine();
  draw();
});
onKeys({ search, close, step });
addEventListener("storage", () => alerts.follow());
for (const press of ["pointerdown", "keydown"]) addEventListener(press, wakeSound);
// The view a visitor chose the last time, where the address says nothing.
if (isBare(location.hash)) history.replaceState(history.state, "", addressOf(view.place));
follow();
if (token === undefined) askForNames();
ticks.subscribe(["*"], put);
