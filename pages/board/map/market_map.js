// The map of the market: a tile for each instrument, as large as its turnover, in the colour of
// its change. Tiles are painted on one canvas; a table below it says the same.
//
// The focus stays on the map; the tile that keys act on is its active descendant.

import { Component, createRef } from "preact";

import { phrase, say } from "../../language.js";
import { colour, onColours } from "../../shell.js";
import { html } from "../html.js";
import { afterFrame, noteMeasure } from "../views/measure.js";
import { grouped, groupKind, groupName, groupOf, summary } from "./groups.js";
import { hit, isLayoutDue, MapLayout } from "./layout.js";
import { MapPainter } from "./painter.js";
import { palette, rgbOf } from "./palette.js";
import { MapScale } from "./scale.js";
import { tileAfter } from "./steps.js";
import { MapTable } from "./table_of_map.js";
import { instrumentText, MapTip } from "./tip.js";

const BY_TURNOVER = phrase("Map of {name}, a stock a tile, as large as its turnover");
const BY_TRADES = phrase("Map of {name}, a stock a tile, as large as its trades");
const MEASURE = "map-update";
const TIP_HEIGHT = 110; // about, pixels

// Properties: rows (those a visitor asked for), rowOf(isin), hasSums, window (the newest),
// asked (a text that is another one when a visitor asks for other rows, or another group),
// group (the one that is shown alone, null for all), onGroup(name or null), selected, onSelect(isin).
export class MarketMap extends Component {
  constructor() {
    super();
    this.frame = createRef();
    this.canvas = createRef();
    // What is pointed at, {tile} or {head}; the tile that keys act on.
    this.state = { pointed: null, activeIsin: null, isFocused: false, steps: null };
    this.layout = null;
    this.laidOutMs = 0;
    this.laidOutFor = null; // what was asked for then
    this.layouts = 0; // how many times
    this.painted = 0; // tiles, in all
  }

  componentDidMount() {
    this.painter = new MapPainter(this.canvas.current);
    this.endColours = onColours(() => this.mix());
    this.resized = new ResizeObserver(() => this.update());
    this.resized.observe(this.frame.current);
    // What is drawn, for who asks in the console, and for tests.
    this.frame.current.drawn = () => {
      const { tiles, heads } = this.layout ?? { tiles: [], heads: [] };
      return { tiles, heads, painted: this.painted, layouts: this.layouts };
    };
    this.mix();
  }

  componentDidUpdate(before) {
    if (before.rows === this.props.rows && before.asked === this.props.asked) return;
    this.update(before.window !== this.props.window);
  }

  componentWillUnmount() {
    this.endColours();
    this.resized.disconnect();
  }

  // Take the colours of the theme.
  mix() {
    const [up, down, none] = ["up", "down", "line"].map((name) => rgbOf(colour(name)));
    const [gap, head, soft] = ["panel", "raised", "soft"].map(colour);
    const steps = palette({ up, down, none });
    this.painter.setColours({ steps, gap, head, soft });
    this.setState({ steps });
    this.update();
  }

  get kind() {
    return groupKind(this.props.rows);
  }

  // The rows of the group that is shown, or all.
  get shownRows() {
    const { rows, group } = this.props;
    const { kind } = this;
    return group === null ? rows : rows.filter((row) => groupOf(row, kind) === group);
  }

  update(isWindow = false) {
    const beganMs = performance.now();
    this.place(beganMs);
    if (this.layout === null) return;
    this.painted += this.painter.paint(this.layout, this.props.rowOf);
    if (isWindow) afterFrame(() => noteMeasure(MEASURE, performance.now() - beganMs));
  }

  // Have a layout that is right, and the one before for as long as it is right enough.
  place(nowMs) {
    const { clientWidth: width, clientHeight: height } = this.frame.current;
    if (!width || !height) return;
    const { asked, hasSums, group } = this.props;
    const { kind, layout } = this;
    const rows = this.shownRows;
    const isSame =
      layout !== null &&
      layout.width === width &&
      layout.height === height &&
      layout.hasSums === hasSums &&
      this.laidOutFor === `${asked} ${kind}`;
    if (isSame && !isLayoutDue(layout.drift(rows), nowMs - this.laidOutMs)) return;
    this.laidOutMs = nowMs;
    this.laidOutFor = `${asked} ${kind}`;
    this.layouts += 1;
    if (!isSame || !layout.follow(rows)) {
      this.layout = new MapLayout(rows, { kind: group === null ? kind : null, hasSums, width, height });
    }
    this.setState({ pointed: null }); // what hangs on the layout is drawn anew
  }

  at(event) {
    if (this.layout === null) return null;
    const box = this.frame.current.getBoundingClientRect();
    return hit(this.layout, { x: event.clientX - box.left, y: event.clientY - box.top });
  }

  pointedAt(event) {
    const found = event.pointerType === "touch" ? null : this.at(event);
    const { pointed } = this.state;
    if (found?.tile !== pointed?.tile || found?.head !== pointed?.head) this.setState({ pointed: found });
  }

  clicked(event) {
    const found = this.at(event);
    if (found === null) return;
    if (found.head !== undefined) return this.props.onGroup(found.head.name);
    this.setState({ activeIsin: found.tile.isin });
    this.props.onSelect(found.tile.isin);
  }

  get activePlace() {
    return this.layout?.tiles.findIndex(({ isin }) => isin === this.state.activeIsin) ?? -1;
  }

  pressed(event) {
    const { group, onGroup, selected, onSelect, rowOf } = this.props;
    if (event.ctrlKey || event.metaKey || event.altKey || this.layout === null) return;
    const { tiles } = this.layout;
    const place = this.activePlace;
    const next = place < 0 ? null : tileAfter(event.key, place, tiles);
    const row = rowOf(tiles[place]?.isin);
    if (next !== null) this.setState({ activeIsin: tiles[next].isin, pointed: null });
    else if (event.key === "Enter" && row !== undefined) onSelect(row.isin);
    else if (event.key === "+" && row !== undefined && group === null && this.kind !== null) {
      onGroup(groupOf(row, this.kind));
    } else if (["-", "Escape"].includes(event.key) && group !== null && selected === undefined) onGroup(null);
    else return;
    event.preventDefault();
  }

  focused() {
    const isThere = this.activePlace >= 0;
    const first = this.layout?.tiles[0]?.isin ?? null;
    this.setState({ isFocused: true, activeIsin: isThere ? this.state.activeIsin : first });
  }

  render({ rows, rowOf, hasSums, group, onGroup, selected, onSelect }, { pointed, activeIsin, isFocused, steps }) {
    const { layout, kind } = this;
    const active = layout?.tiles[this.activePlace];
    const isShown = active !== undefined && isFocused;
    const name = group === null ? say("the market") : groupName(group);
    const label = say(hasSums ? BY_TURNOVER : BY_TRADES, { name });
    const told = pointed ?? (isShown ? { tile: active } : null);
    return html`
      <div id="map" class="panel">
        <div class="crumbs">
          ${group === null
            ? html`<h2>${kind === null ? say("Stocks") : kind === "sector" ? say("Sectors") : say("Markets")}</h2>`
            : html`
                <button type="button" class="quiet" onClick=${() => onGroup(null)}>‹ ${say("All")}</button>
                <h2 lang="ko">${groupName(group)}</h2>
              `}
          <span class="soft">${noteText(layout)}</span>
          ${steps && html`<${MapScale} steps=${steps} />`}
        </div>
        <div class="tiles" ref=${this.frame}>
          <div
            class="surface greys"
            role="listbox"
            tabindex="0"
            aria-label=${label}
            aria-describedby="keys"
            aria-activedescendant=${isShown ? "tile" : undefined}
            onKeyDown=${(event) => this.pressed(event)}
            onFocus=${() => this.focused()}
            onBlur=${() => this.setState({ isFocused: false })}
            onPointerMove=${(event) => this.pointedAt(event)}
            onPointerLeave=${() => this.setState({ pointed: null })}
            onClick=${(event) => this.clicked(event)}
          >
            <canvas aria-hidden="true" ref=${this.canvas}></canvas>
            ${told !== null && html`<i class="ring pointed" style=${boxOf(told.tile ?? told.head)}></i>`}
            <${Ring} kind="selected" tile=${layout?.tiles.find(({ isin }) => isin === selected)} />
            <${Ring} kind="active" tile=${isShown ? active : undefined} />
            <div
              id="tile"
              class="visually-hidden"
              role="option"
              aria-selected=${active !== undefined && active.isin === selected}
              aria-posinset=${active && this.activePlace + 1}
              aria-setsize=${active && layout.tiles.length}
            >
              ${active === undefined ? say("No stock") : instrumentText(rowOf(active.isin))}
            </div>
          </div>
          ${told !== null &&
          html`
            <${MapTip}
              row=${told.tile && rowOf(told.tile.isin)}
              sum=${told.head && this.sumOf(told.head.name)}
              hasSums=${hasSums}
              style=${tipPlace(told.tile ?? told.head, layout)}
            />
          `}
        </div>
        <${MapTable}
          groups=${group === null && kind !== null ? () => grouped(rows, kind) : null}
          rows=${() => this.shownRows}
          hasSums=${hasSums}
          onGroup=${onGroup}
          onSelect=${onSelect}
        />
      </div>
    `;
  }

  sumOf(name) {
    const { kind } = this;
    const rows = this.props.rows.filter((row) => groupOf(row, kind) === name);
    return summary(name, rows, this.props.hasSums);
  }
}

const Ring = ({ kind, tile }) => tile && html`<i class=${`ring ${kind}`} style=${boxOf(tile)}></i>`;

const boxOf = ({ x, y, width, height }) => ({
  left: `${x}px`,
  top: `${y}px`,
  width: `${width}px`,
  height: `${height}px`,
});

// Beside what it tells of, within the map.
function tipPlace({ x, y, width, height }, { width: wide, height: high }) {
  const isLeft = x + width / 2 > wide / 2;
  const top = Math.max(0, Math.min(high - TIP_HEIGHT, y + height / 2 - TIP_HEIGHT / 2));
  const gap = Math.min(width, wide / 3);
  return isLeft
    ? { right: `${Math.max(4, wide - x - width + gap + 6)}px`, top: `${top}px` }
    : { left: `${x + gap + 6}px`, top: `${top}px` };
}

// What is not to be seen is told.
function noteText(layout) {
  if (layout === null) return "";
  const parts = [];
  if (layout.unseen) parts.push(say("smaller than a pixel: {count}", { count: layout.unseen }));
  if (layout.without) parts.push(say("without turnover: {count}", { count: layout.without }));
  return parts.join(", ");
}
