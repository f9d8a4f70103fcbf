// The same instruments on both sides, each in a tile whose price flashes when it changes.

import { Component, createRef } from "preact";

import { changeOf, KIND_WORDS, priceText, ratioText } from "../board/format.js";
import { html } from "../board/html.js";
import { nameOf } from "../board/names.js";
import { say } from "../language.js";

const stillness = matchMedia("(prefers-reduced-motion: reduce)");

// `prices` has {price, seq} by ISIN; each other `seq` is a flash of `flashMs`.
export function Tiles({ isins, instruments, prices, flashMs }) {
  return html`
    <ul class="tiles" role="list">
      ${isins.map((isin) => {
        const instrument = instruments.get(isin);
        const { price = null, seq = 0 } = prices.get(isin) ?? {};
        return html`
          <${Tile}
            key=${isin}
            name=${nameOf(instrument, isin)}
            price=${price}
            seq=${seq}
            change=${changeOf(price ?? "0", price === null ? null : (instrument?.prev_close ?? null))}
            flashMs=${flashMs}
          />
        `;
      })}
    </ul>
  `;
}

class Tile extends Component {
  box = createRef();

  shouldComponentUpdate(next) {
    return next.seq !== this.props.seq || next.name !== this.props.name;
  }

  componentDidUpdate(before) {
    const { price, seq, flashMs } = this.props;
    if (seq === before.seq || stillness.matches) return;
    const rise = Number(price) - Number(before.price);
    const tint = rise > 0 ? "var(--up-tint)" : rise < 0 ? "var(--down-tint)" : "var(--hover)";
    // With both ends given it runs off the main thread, which would else draw every frame.
    const ends = [{ backgroundColor: tint }, { backgroundColor: "transparent" }];
    this.box.current.animate(ends, { duration: flashMs, easing: "ease-out" });
  }

  render({ name, price, change }) {
    return html`
      <li class="tile" ref=${this.box}>
        <span class="name" lang="ko" title=${name}>${name}</span>
        <b class=${`price ${change.kind}`}>${price === null ? "–" : priceText(price)}</b>
        <span class=${`ratio ${change.kind}`}>
          ${ratioText(change)}
          ${change.ratio !== null && html`<span class="visually-hidden">${say(KIND_WORDS[change.kind])}</span>`}
        </span>
      </li>
    `;
  }
}
