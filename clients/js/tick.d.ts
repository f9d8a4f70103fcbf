/** An issue's newest trade. `price` and `size` are decimal text with every digit. */
export interface Item {
  isin: string;
  /** Microseconds since 1970 UTC, by the exchange's clock. */
  time: number;
  /** The feed's number of the trade; orders trades of one time. */
  seq: number;
  price: string;
  size: string;
  /** Further fields, as the gateway sends them. */
  [field: string]: unknown;
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
  code: string;
  message: string;
}

/** A message of the server; see the protocol for the fields of each type. */
export interface Message {
  type: string;
  [field: string]: unknown;
}

export interface Position {
  epoch: string;
  offset: number;
  issues?: unknown;
}

export interface Options {
  /** Text, or a function that returns a fresh token, or a promise of one. */
  token?: string | (() => string | Promise<string>);
  onState?(state: State, text: string): void;
  /** Every message, after it was taken in, and the milliseconds that took. */
  onMessage?(message: Message, tookMs: number): void;
  /** Another epoch: everything known before is void. */
  onReset?(): void;
  /** Keys that were not accepted. */
  onRejected?(rejected: Rejected[]): void;
}

/** `window` is the window's end; null for what a snapshot says. */
export type Callback = (item: Item, window: number | null) => void;

export class TickClient {
  /** Connects with the first `subscribe`. */
  constructor(url: string | URL, options?: Options);
  /** ISIN to newest item. */
  readonly items: Map<string, Item>;
  /** Everything up to it has arrived; null before the first answer. */
  readonly position: Position | null;
  /** The server's clock less this one, in milliseconds. */
  readonly clockSkewMs: number;
  /** When the next try is due, by `Date.now()`; null if none is waited for. */
  readonly retryAtMs: number | null;
  /** Market or sector to its ISINs of now. */
  readonly members: Map<string, string[]>;
  /** Returns a function that ends the subscription. */
  subscribe(keys: Iterable<string>, callback: Callback): () => void;
  /** Tries now, if the next try is waited for. */
  reconnect(): void;
  /** Ends the connection for good. */
  close(): void;
}

/** Parses a message; `price` and `size` become text. */
export function readMessage(text: string): Message;
/** Returns the delay before a try, in milliseconds. `random` is in [0, 1). */
export function backoffMs(attempt: number, random?: number): number;
/** Returns whether no new connection follows a close code. */
export function isFinal(code: number): boolean;
/** Returns whether `item` is older than `known`, within an epoch. */
export function isOlder(
  item: Pick<Item, "time" | "seq">,
  known: Pick<Item, "time" | "seq">,
): boolean;
