// Why an arm: the latest decisions, and what the score of one that was clicked on is made of.

import { bar, make, moment, plain, reward } from "./drawing.js";

const SHOWN = 12;
const signed = (value) => `${value > 0 ? "+" : ""}${reward(value)}`;
const bodyOf = (id) => document.getElementById(id).querySelector(".body");
const note = (text) => make("p", { class: "note" }, text);

export function named(id, title) {
  // An id, and what people read in its place where there is that.
  const own = make("bdi", {}, plain(`${id}`));
  return title ? [own, " ", make("bdi", { class: "soft title" }, plain(title))] : [own];
}

export function explainer(path, text, title) {
  // A name that explains itself when it is clicked on.
  const whole = plain(title ? `${text} ${title}` : text);
  const button = make("button", { type: "button", class: "explain", title: whole }, ...named(text, title));
  button.addEventListener("click", () => explain(path, text));
  return button;
}

export function showLatest({ latest, titles }) {
  const body = bodyOf("decisions");
  if (!latest || latest.length === 0) return body.replaceChildren(note("No decision has been made yet."));
  const known = new Map(titles);
  const rows = latest.map((one) => make("tr", {},
    make("td", { class: "name" }, explainer(`decisions/${encodeURIComponent(one.id)}`, one.id)),
    make("td", { class: "name", title: plain(`${one.arm} ${known.get(one.arm) ?? ""}`.trim()) }, ...named(one.arm, known.get(one.arm))),
    make("td", { class: "number" }, `${one.version}`),
    make("td", { class: "whole" }, moment(one.at))));
  const names = ["Decision", "Arm", "Version", "At"].map((name) => make("th", { scope: "col" }, name));
  return body.replaceChildren(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Latest decisions" },
    make("table", {}, make("thead", {}, make("tr", {}, ...names)), make("tbody", {}, ...rows))));
}

async function explain(path, text) {
  const panel = document.getElementById("explanation");
  const body = bodyOf("explanation");
  panel.hidden = false;
  body.replaceChildren(note(`Asking about ${plain(text)} …`));
  panel.focus();
  const key = sessionStorage.getItem("fastbandit-key");
  try {
    const answer = await fetch(`../v1/${path}/explanation`, {
      headers: key ? { Authorization: `Bearer ${key}` } : {}, cache: "no-store",
    });
    const found = await answer.json();
    body.replaceChildren(...(answer.ok ? partsOf(found) : [note(plain(`${found.detail} ${found.fix}`))]));
  } catch {
    body.replaceChildren(note("The service does not answer: try again."));
  }
}

function partsOf(found) {
  const facts = [["Arm", ...named(found.arm, found.title)], ["Score", reward(found.score)],
    ["Expected reward", reward(found.expected) + (found.interval === null ? "" : ` (${found.interval.map(reward).join(" to ")})`)],
    ["Draw", signed(found.draw)]];
  if (found.propensity !== null) facts.push(["Propensity", found.propensity.toFixed(4)]);
  if (found.runner_up_score !== null) facts.push(["Runner-up", ...named(found.runner_up, found.runner_up_title), `, ${reward(found.runner_up_score)}`]);
  facts.push(["Explained by version", `${found.version}`]);
  if (found.decided_by_version !== null) facts.push(["Decided by version", `${found.decided_by_version}`]);
  return [
    make("dl", { class: "facts" }, ...facts.map(([name, ...value]) => make("div", {}, make("dt", {}, name), make("dd", {}, ...value)))),
    ...(found.decision === null ? [note("For the typical context.")] : []),
    ...(found.is_uniform ? [note("This decision took any eligible arm alike: its score did not matter.")] : []),
    barsOf(found.contributions),
    ...found.changes.slice(0, 3).map((one) => note(
      `Were ${plain(one.features.join(" and "))} typical, the other would be ahead (difference ${signed(one.difference)}).`)),
  ];
}

function barsOf(contributions) {
  const { base, ...others } = contributions;
  const sorted = Object.entries(others).sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));
  const rest = sorted.slice(SHOWN);
  const rows = [["base", base], ...sorted.slice(0, SHOWN)];
  if (rest.length > 0) rows.push([`${rest.length} others`, rest.reduce((sum, [, value]) => sum + value, 0)]);
  const longest = Math.max(...rows.map(([, value]) => Math.abs(value)), 1e-12);
  return make("table", { class: "contributions" }, make("tbody", {}, ...rows.map(([name, value]) => make("tr", {},
    make("th", { scope: "row" }, make("bdi", {}, plain(name))),
    make("td", { class: "number" }, signed(value)),
    make("td", { class: value < 0 ? "meter is-less" : "meter" }, bar(Math.abs(value) / longest))))));
}
