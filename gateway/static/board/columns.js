// Which columns the table has room for. Pure.

const COLUMNS = [
  { id: "star", label: "Watch" },
  { id: "name", label: "Issue", order: "name" },
  { id: "isin", label: "ISIN", order: "isin" },
  { id: "price", label: "Price", order: "price", isNumber: true },
  { id: "change", label: "Change", order: "change", isNumber: true },
  { id: "trades", label: "Trades", order: "trades", isNumber: true },
  { id: "time", label: "Last trade", order: "time", isNumber: true },
];

// From which width of the table on, in rem: a name comes before what else there is to say,
// and in tall rows what belongs together is in two lines.
const LAYOUTS = [
  { fromRem: 72, isTall: false, without: [] },
  { fromRem: 52, isTall: false, without: ["isin"] },
  { fromRem: 36, isTall: true, without: ["isin"] },
  { fromRem: 0, isTall: true, without: ["isin", "trades", "time"] },
];

// What an issue without a name is called by is not left out.
const [NAMED, UNNAMED] = [true, false].map((hasNames) =>
  LAYOUTS.map(({ without, ...layout }) => {
    const gone = hasNames ? without : ["name", ...without.filter((id) => id !== "isin")];
    return { ...layout, columns: COLUMNS.filter(({ id }) => !gone.includes(id)) };
  }),
);

// Returns {columns, isTall}; the same object for the same layout.
export function layoutFor(widthRem, hasNames) {
  return (hasNames ? NAMED : UNNAMED).find(({ fromRem }) => widthRem >= fromRem);
}

// The order asked for, if its column is there: nobody could see why the rows are so.
export function orderAmong({ columns }, order) {
  if (columns.some((column) => column.order === order.column)) return order;
  return { column: "change", direction: "descending" };
}
