// Markup as tagged templates, with the calm reading of Preact's parts.

import htm from "htm";
import { h } from "preact";

export const html = htm.bind(h);
