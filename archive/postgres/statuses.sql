-- The archive's table of trading statuses, made where it is missing.

CREATE TABLE tickthrottle_statuses (
  isin text NOT NULL,
  status text NOT NULL,
  "time" timestamptz NOT NULL,
  venue text,
  reason text,
  until timestamptz,
  expected_price numeric,
  expected_size numeric,
  lower numeric,
  upper numeric,
  last_time timestamptz,
  last_seq bigint,
  last_price numeric,
  taken timestamptz NOT NULL,
  epoch text NOT NULL,
  number bigint NOT NULL,
  json json NOT NULL,
  PRIMARY KEY (epoch, number)
);
CREATE INDEX tickthrottle_statuses_by_instrument ON tickthrottle_statuses (isin, taken);
