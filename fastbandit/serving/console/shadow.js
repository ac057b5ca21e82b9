// The panel of shadow mode: who decides, how often both agree, and the difference with its interval.

import { count, make, reward, share, whiskers } from "./drawing.js";

const signed = (value) => `${value > 0 ? "+" : ""}${reward(value)}`;

function toneOf(difference) {
  if (difference.low > 0) return "is-good";
  return difference.high < 0 ? "is-bad" : "";
}

function factsOf(one) {
  const { difference } = one;
  const entries = [["Same arm", `${share(one.matches / one.count)} of ${count(one.count)}`, ""]];
  if (difference !== null) {
    entries.push(["Bandit less baseline", `${signed(difference.value)} (${signed(difference.low)} to ${signed(difference.high)})`, toneOf(difference)]);
    entries.push(["Effective sample size", count(Math.round(difference.effective)), ""]);
  }
  return make("dl", { class: "facts" }, ...entries.map(([name, value, tone]) =>
    make("div", {}, make("dt", {}, name), make("dd", tone ? { class: tone } : {}, value))));
}

function wordsOf(one) {
  const warnings = one.warnings.map((text) => make("li", { class: "doubt" }, text));
  return make("ul", { class: "words" }, ...one.summary.map((text) => make("li", {}, text)), ...warnings);
}

function pictureOf(evidence, decides) {
  const rows = evidence.filter((one) => one.difference !== null).map((one) => ({
    name: one.decided_by === decides ? "now" : "before",
    mean: { mean: one.difference.value, low: one.difference.low, high: one.difference.high },
  }));
  return rows.length === 0 ? null : whiskers("The bandit's mean reward less the baseline's, with its 95 % interval; the line is 0", rows, 0);
}

export function showShadow({ shadow, notes }) {
  const section = document.getElementById("shadow");
  section.hidden = shadow === null;
  if (shadow === null) return null;
  const latest = [...shadow.evidence].sort((one) => (one.decided_by === shadow.decides ? -1 : 1));
  const chart = pictureOf(latest, shadow.decides);
  const whose = shadow.baseline === "random" ? "which takes any arm" : "which the caller names";
  const parts = latest.flatMap((one) => [
    make("h3", {}, `Decisions of the ${one.decided_by}`), factsOf(one), wordsOf(one)]);
  section.querySelector(".body").replaceChildren(
    make("p", {}, make("span", { class: "tag" }, `The ${shadow.decides} decides`), ` beside ${
      shadow.decides === "bandit" ? `the baseline, ${whose}` : "the bandit, which only learns"}.`),
    ...(chart === null ? [] : [chart.element]),
    ...(notes.shadow ? [make("p", { class: "note" }, notes.shadow)] : parts),
    make("p", { class: "why" }, `To let the ${shadow.decides === "bandit" ? "baseline" : "bandit"} decide: `,
      make("code", {}, shadow.command)),
  );
  chart?.show();
  return chart;
}
