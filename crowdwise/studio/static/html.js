// Elements as templates. Text of users is always a text node: nothing here makes markup of it.
import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export const html = htm.bind(h);
