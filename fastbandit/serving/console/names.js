// The panel of features that were not declared: names, kinds and levels that the version learned to read.

import { count, make, plain } from "./drawing.js";

function rowOf({ name, levels, count: total }) {
  const more = levels !== null && total > levels.length ? `, and ${count(total - levels.length)} more` : "";
  const said = levels === null ? "number" : `${levels.map(plain).join(", ")}${more}`;
  return make("tr", {}, make("th", { scope: "row" }, plain(name)), make("td", {}, said));
}

function partOf(one) {
  const head = make("p", {}, make("span", { class: "tag" }, one.of),
    ` ${count(one.known)} names in ${count(one.used)} of ${count(one.slots)} slots; all others share ${count(one.hashed)} numbers.`);
  if (one.names.length === 0) return [head];
  const named = { "aria-label": `Names of the ${one.of}` };
  return [head, make("table", named, make("tbody", {}, ...one.names.map(rowOf)))];
}

export function showNames({ serving }) {
  const section = document.getElementById("names");
  const parts = serving.names ?? [];
  section.hidden = parts.length === 0;
  section.querySelector(".body").replaceChildren(...parts.flatMap(partOf));
  return null;
}
