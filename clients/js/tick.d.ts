/**
 * An instrument's newest trade, and the sums of all trades that the item stands for
 * (`traded`). Decimals are text with every digit.
 */
export interface Item {
  isin: string;
  /** Microseconds since 1970 UTC, by the exchange's clock. */
  time: number;
  /** The feed's number of the trade; orders trades of one time. */
  seq: number;
  price: string;
  size: string;
  /** How many trades it stands for; 0 if it was known before, or nobody has counted them. */
  trades: number;
  /** The sums of those; left out if its own trade is all, and if nobody knows them. */
  volume?: string;
  value?: string;
  /** Left out as well if none of the trades counts for the range. */
  high?: string;
  low?: string;
  /** How often a trade that was shown was taken back; left out while none was. */
  revision?: number;
  /** What was traded since the day began, as of the item; not there if nobody knows it. */
  day?: Day;
  /** Further fields, as the gateway sends them. */
  [field: string]: unknown;
}

/**
 * The sums of some trades: of their sizes, of price times size, and both extremes, which
 * are undefined if none of the trades counts for the range.
 */
export interface Traded {
  trades: number;
  volume: string;
  value: string;
  high?: string;
  low?: string;
}

/** The day so far: its sums, and the price of its first trade that counts for the last. */
export interface Day extends Traded {
  /** When it began, milliseconds since 1970. */
  start: number;
  open?: string;
}

/** What a window says of a market or sector; sums are decimal text with every digit. */
export interface Group {
  group: string;
  /** The end of the window, milliseconds since 1970. */
  window: number;
  instruments: number;
  advancing: number;
  declining: number;
  unchanged: number;
  unpriced: number;
  trades: number;
  volume: string;
  value: string;
  mean_change_pct: string | null;
}

export type Interval = "1m" | "5m" | "15m" | "1h" | "1d";

/** What was traded of an instrument in a span; prices and sums are decimal text. */
export interface Bar {
  interval: Interval;
  isin: string;
  /** Its bounds, milliseconds since 1970. */
  start: number;
  end: number;
  /** Null where no trade counts for the last price. */
  open: string | null;
  /** Null where no trade counts for the range. */
  high: string | null;
  low: string | null;
  close: string | null;
  volume: string | null;
  value: string | null;
  trades: number;
  vwap: string | null;
  closed: boolean;
  /** How many late trades have amended it. */
  revision: number;
}

export interface BarPosition {
  epoch: string;
  sequence: number;
}

export type State =
  | "connecting"
  | "live"
  | "stale"
  | "starting"
  | "offline"
  | "closed";

export interface Rejected {
  key: string;
  code: "bad_isin" | "unknown_key" | "not_served" | "not_allowed";
  message: string;
}

/** Names one unbroken numbering; null before the first window ever. */
export type Epoch = string | null;

/** The first message of a connection. */
export interface Welcome {
  type: "welcome";
  protocol: "tick.v1";
  /** Name of the connection in logs. */
  connection: string;
  epoch: Epoch;
  window_ms: number;
  heartbeat_ms: number;
  /** Microseconds since 1970. */
  server_time: number;
  /** The one market that the gateway serves, if it serves one. */
  market?: string;
  limits: { keys: number; messages_per_second: number; message_bytes: number };
}

/** Answers subscribe, unsubscribe, list and auth. */
export interface Ack {
  type: "ack";
  id?: number | string;
  op: "subscribe" | "unsubscribe" | "list" | "auth";
  accepted: string[];
  rejected: Rejected[];
  /** Keys held. */
  count: number;
  min_interval_ms?: number;
  /** Code to ISIN. */
  codes?: Record<string, string>;
  members?: Record<string, string[]>;
  /** Names the instrument table. */
  instruments?: string;
  /** The fields of rows by position, which items are made of. */
  fields?: string[];
  /** Number to the key of an instrument or series. */
  names?: Record<string, string>;
  /** The chain of windows is told. */
  chain?: true;
  resumed?: boolean;
  /** Until when a token is good, microseconds since 1970. */
  expires?: number | null;
}

/** The latest trade of each key, in pieces. */
export interface Snapshot {
  type: "snapshot";
  epoch: Epoch;
  offset: number;
  window: number | null;
  /** The last piece. */
  final: boolean;
  names?: Record<string, string>;
  /** The hash at the offset, or its beginning, then links; it is what `verify` reads. */
  chain?: string[];
  groups?: Group[];
  data: Item[];
}

/** What changed. */
export interface Update {
  type: "update";
  epoch: Epoch;
  offset: number;
  window: number | null;
  /** How many windows it stands for, 1 if left out; 0 if some rows are held back. */
  merged?: number;
  names?: Record<string, string>;
  /** The hash at the offset, or its beginning, then links; it is what `verify` reads. */
  chain?: string[];
  groups?: Group[];
  data: Item[];
}

/** Bars that changed, or the newest ones. */
export interface Bars {
  type: "bars";
  epoch: Epoch;
  sequence: number;
  snapshot?: true;
  final?: boolean;
  resumed?: boolean;
  bars: Bar[];
}

/** Markets and sectors stand for other instruments from now on. */
export interface Members {
  type: "members";
  instruments: string;
  members: Record<string, string[]>;
  /** Keys that have another name now, old to new. */
  renamed: Record<string, string>;
  names?: Record<string, string>;
}

export interface Heartbeat {
  type: "heartbeat";
  epoch: Epoch;
  offset: number;
  window: number | null;
  /** The hash at the offset, or its beginning, then links; it is what `verify` reads. */
  chain?: string[];
  server_time: number;
}

/** Entries of the trade log of an instrument that is followed. */
export interface Trades {
  type: "trades";
  isin: string;
  /** Of the first entry. */
  number: number;
  missed: number | null;
  entries: Entry[];
}

/** A trade, or what takes one back (`cancels`), which has neither price nor size. */
export interface Entry {
  isin: string;
  time: number;
  seq: number;
  price?: string;
  size?: string;
  cancels?: number;
  /** The end of the window that it was appended in, milliseconds since 1970. */
  window: number;
  [field: string]: unknown;
}

/** An entry as `trades` gives it. */
export interface TradeEntry extends Entry {
  /** Goes up by one from entry to entry of an instrument. */
  number: number;
  /** How many are missing before it; null where nobody knows. */
  missed: number | null;
}

export interface Statuses {
  type: "statuses";
  epoch: string;
  /** Whether it has all that is current, in place of what was told before. */
  snapshot: boolean;
  /** Whether it has what was missed while away. */
  resumed?: boolean;
  missed: number | null;
  entries: InstrumentStatus[];
}

/** What an exchange says of an instrument's trading. Times are microseconds since 1970. */
export interface InstrumentStatus {
  isin: string;
  status:
    | "trading"
    | "halted"
    | "volatility_interruption"
    | "auction"
    | "limit_up"
    | "limit_down"
    | "price_bands";
  time: number;
  venue?: string;
  until?: number;
  expected_price?: string;
  expected_size?: string;
  lower?: string;
  upper?: string;
  reason?: string;
  number: number;
  taken: number;
  /** The newest trade that the log held before it. */
  last?: { time: number; seq: number; price: string };
}

/** Windows stop arriving, or arrive again. */
export interface Status {
  type: "status";
  feed: "stale" | "starting" | "live";
  since_window: number | null;
  message: string;
}

/** The connection will be closed. */
export interface Notice {
  type: "notice";
  code: "restart" | "closed";
  reconnect_after_ms: number;
  message: string;
}

export interface Pong {
  type: "pong";
  id?: number | string;
  server_time: number;
}

/** A message of the client was not carried out. */
export interface ErrorMessage {
  type: "error";
  id?: number | string;
  code:
    | "bad_json"
    | "bad_request"
    | "key_limit"
    | "field_limit"
    | "not_allowed"
    | "rate_limited"
    | "internal";
  message: string;
  retry_after_ms?: number;
  incident?: string;
}

/** A message of the server, told by its `type`. */
export type Message =
  | Welcome
  | Ack
  | Snapshot
  | Update
  | Bars
  | Trades
  | Statuses
  | Members
  | Heartbeat
  | Status
  | Notice
  | Pong
  | ErrorMessage;

export interface Position {
  epoch: string;
  offset: number;
  instruments?: unknown;
}

/** Of the windows behind `after` up to `offset`; `hasRows`: their rows were compared, too. */
export interface Verdict {
  state: "begins" | "holds" | "broken";
  epoch: string;
  after: number;
  offset: number;
  hasRows: boolean;
  reason: string;
}

export interface Options {
  /** Text, or a function that returns a fresh token, or a promise of one. */
  token?: string | (() => string | Promise<string>);
  /**
   * At most one update per so many milliseconds, each with the newest values; the gateway
   * grants whole windows, a minute at most.
   */
  minIntervalMs?: number;
  /**
   * The fields that items have beside `isin` and `trades`, such as `["price", "size"]`; all
   * without it. Fewer are fewer bytes.
   */
  fields?: readonly string[];
  /** Check the chain of windows; items need all `fields` then. */
  verify?: boolean;
  /** What that says of each step; without it the console is warned of a break. */
  onChain?(verdict: Verdict): void;
  /** The text of `offline` says so if the gateway does not list the page's origin. */
  onState?(state: State, text: string): void;
  /** Every message, after it was taken in, the milliseconds that took, and its length. */
  onMessage?(message: Message, tookMs: number, size: number): void;
  /** Another epoch: everything known before is void. */
  onReset?(): void;
  /** Keys that were not accepted, or that a newer token takes. */
  onRejected?(
    rejected: { key: string; code: Rejected["code"] | ErrorMessage["code"]; message: string }[],
  ): void;
  /**
   * Keys of instruments, markets or sectors that have no item a window after their snapshot,
   * each key once. Without it the console is warned of them.
   */
  onNothing?(keys: string[]): void;
  /**
   * First the current statuses of the instruments that are followed, then each at once.
   * `missed` is how many are missing before it; null where nobody knows.
   */
  onStatus?(status: InstrumentStatus & { missed: number | null }): void;
  /** Bars that were told may have been amended meanwhile, or some are missing. */
  onBarsMissed?(): void;
}

/** `window` is the window's end; null for what a snapshot says. */
export type Callback = (item: Item, window: number | null) => void;
export type GroupCallback = (group: Group, window: number | null) => void;
type GroupKey = `group:${string}`;
/**
 * Gets items and figures of groups; `"isin" in item` tells an item. Who knows that no key is
 * a group's may give a `Callback`: methods are compared both ways.
 */
export type AnyCallback = {
  call(item: Item | Group, window: number | null): void;
}["call"];
type KeyOf<Keys> = Keys extends string ? Keys : Keys extends Iterable<infer Key> ? Key : never;
/** Nobody knows of a `string` whether it is the key of a group. */
type CallbackOf<Key> = [Key] extends [GroupKey]
  ? GroupCallback
  : string extends Key
    ? AnyCallback
    : [Extract<Key, GroupKey>] extends [never]
      ? Callback
      : AnyCallback;

export class TickClient {
  /** Connects with the first `subscribe`. */
  constructor(url: string | URL, options?: Options);
  /** ISIN to newest item. */
  readonly items: Map<string, Item>;
  /** Everything up to it has arrived; null before the first answer. */
  readonly position: Position | null;
  /** The server's clock less this one, in milliseconds. */
  readonly clockSkewMs: number;
  /** The length of a window, in milliseconds. */
  readonly windowMs: number;
  /** The end of the newest window that has arrived, also an empty one; null before the first. */
  readonly lastWindow: number | null;
  /** For how many milliseconds no window has ended that has arrived; null before the first. */
  readonly ageMs: number | null;
  /** When the next try is due, by `Date.now()`; null if none is waited for. */
  readonly retryAtMs: number | null;
  /** Market or sector to its ISINs of now. */
  readonly members: Map<string, string[]>;
  /** Key of a group to its newest figures. */
  readonly groups: Map<string, Group>;
  /** ISIN to its current statuses, one of each venue and kind. */
  readonly statuses: Map<string, InstrumentStatus[]>;
  /** Every bar up to it has arrived; null before the first answer. */
  readonly barPosition: BarPosition | null;
  /**
   * Follows one key, or several; returns a function that ends it. What a callback throws is
   * reported, and keeps nothing from the others. Throws after `close`.
   */
  subscribe<const Keys extends string | Iterable<string>>(
    keys: Keys,
    callback: CallbackOf<KeyOf<Keys>>,
  ): () => void;
  /** Follows bars of instruments (ISINs, codes, or "*"), the newest `last` of each first. */
  bars(
    interval: Interval,
    instruments: string | Iterable<string>,
    callback: (bar: Bar) => void,
    options?: { last?: number },
  ): () => void;
  /** Follows every trade of up to five instruments (ISINs or codes), from now on. */
  trades(
    instruments: string | Iterable<string>,
    callback: (entry: TradeEntry) => void,
  ): () => void;
  /** Tries now, if the next try is waited for. */
  reconnect(): void;
  /** Ends the connection for good: `subscribe` throws after it. */
  close(): void;
}

/** Parses a message; prices, sizes and sums become text. */
export function readMessage(text: string): Message;
/** Parses an answer of `/v1/bars`; prices and sums become text. */
export function readBars(text: string): { data: Bar[]; [field: string]: unknown };
/** Returns the sums of an item's trades; null if it stands for none, or they are not known. */
export function traded(item: Item): Traded | null;
/** Returns the sums of the trades of both, exactly; null if one is null. */
export function addTraded(one: Traded | null, other: Traded | null): Traded | null;
/** Returns the day so far as of an item, given that of the item before; undefined if unknown. */
export function dayAfter(item: Item, before: Day | undefined): Day | undefined;
/** Returns the delay before a try, in milliseconds. `random` is in [0, 1). */
export function backoffMs(attempt: number, random?: number): number;
/** Returns whether no new connection follows a close code. */
export function isFinal(code: number): boolean;
/** Returns whether `item` is older than `known`, within an epoch. */
export function isOlder(
  item: Pick<Item, "time" | "seq" | "revision">,
  known: Pick<Item, "time" | "seq" | "revision">,
): boolean;
/** Returns whether a state of a bar is older than another of the same bar. */
export function isOlderBar(bar: Bar, known: Bar): boolean;
