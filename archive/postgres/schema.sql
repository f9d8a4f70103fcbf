-- The archive's tables.

-- The day, in UTC, of a window or bar that ends then: that of its last millisecond, as
-- `day_of` says it in archive/contract/segment.py.
CREATE OR REPLACE FUNCTION tickthrottle_day(ends timestamptz) RETURNS date
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT (ends AT TIME ZONE 'UTC' - interval '1 millisecond')::date $$;

CREATE TABLE IF NOT EXISTS tickthrottle_archive (
  only_row bool PRIMARY KEY DEFAULT true CHECK (only_row),
  version int NOT NULL
);

CREATE TABLE IF NOT EXISTS tickthrottle_windows (
  epoch text NOT NULL,
  "offset" bigint NOT NULL,
  "window" timestamptz NOT NULL,
  published timestamptz NOT NULL,
  window_ms int NOT NULL,
  rows int NOT NULL,
  trades bigint NOT NULL,
  unknown_instruments int NOT NULL,
  instrument_version bigint NOT NULL,
  PRIMARY KEY (epoch, "offset")
);
CREATE INDEX IF NOT EXISTS tickthrottle_windows_by_end
  ON tickthrottle_windows ("window");

CREATE TABLE IF NOT EXISTS tickthrottle_rows (
  isin text NOT NULL,
  "window" timestamptz NOT NULL,
  epoch text NOT NULL,
  "offset" bigint NOT NULL,
  "time" timestamptz NOT NULL,
  seq bigint NOT NULL,
  position bigint NOT NULL,
  price numeric,
  size numeric,
  trades bigint NOT NULL,
  volume numeric,
  value numeric,
  high numeric,
  low numeric,
  fields json,
  listed bool NOT NULL,
  code text,
  name text,
  market text,
  sector text,
  prev_close numeric,
  english_name text,
  currency text,
  listed_shares bigint,
  tick_table text,
  status text,
  PRIMARY KEY (epoch, "offset", isin)
);
CREATE INDEX IF NOT EXISTS tickthrottle_rows_by_instrument
  ON tickthrottle_rows (isin, "window");
CREATE INDEX IF NOT EXISTS tickthrottle_rows_by_end
  ON tickthrottle_rows USING brin ("window");

CREATE TABLE IF NOT EXISTS tickthrottle_bar_batches (
  epoch text NOT NULL,
  number bigint NOT NULL,
  published timestamptz NOT NULL,
  first_end timestamptz NOT NULL,
  last_end timestamptz NOT NULL,
  bars int NOT NULL,
  PRIMARY KEY (epoch, number)
);

CREATE TABLE IF NOT EXISTS tickthrottle_bars (
  isin text NOT NULL,
  start timestamptz NOT NULL,
  width_ms int NOT NULL,
  open numeric,
  high numeric,
  low numeric,
  close numeric,
  volume numeric,
  value numeric,
  trades bigint NOT NULL,
  revision bigint NOT NULL,
  epoch text NOT NULL,
  number bigint NOT NULL,
  PRIMARY KEY (isin, width_ms, start)
);
CREATE INDEX IF NOT EXISTS tickthrottle_bars_by_start
  ON tickthrottle_bars USING brin (start);
