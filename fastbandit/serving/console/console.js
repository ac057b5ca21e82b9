// The console: asks the service every two seconds, and shows its answer panel by panel.

import {
  bar, bars, count, duration, extent, histogram, make, meanLine, moment, plain, reward, share,
  short, spark, timeChart, whiskers, draw,
} from "./drawing.js";
import { explainer, showLatest } from "./explanation.js";
import { showNames } from "./names.js";
import { showShadow } from "./shadow.js";

const EVERY_MS = 2000;
const WHILE_READING_MS = 300;
const PATIENCE_MS = 15000;
const byId = (id) => document.getElementById(id);
const bodyOf = (id) => byId(id).querySelector(".body");
const note = (text) => make("p", { class: "note" }, text);

// -- small pieces

function facts(entries) {
  return make("dl", { class: "facts" }, ...entries.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function table(label, columns, rows) {
  const entry = (tag, value, column) => make(tag, column.class ? { class: column.class } : {}, value);
  const head = make("tr", {}, ...columns.map((column) => {
    const th = entry("th", column.name, column);
    th.setAttribute("scope", "col");
    return th;
  }));
  const body = rows.map((row) => make("tr", {}, ...row.map((value, n) => entry("td", value, columns[n]))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

function within(mean) {
  return mean.low === null ? "" : ` ± ${reward((mean.high - mean.low) / 2)}`;
}

const described = (mean) => (mean === null ? "no decision" : `${reward(mean.mean)}${within(mean)} of ${count(mean.count)}`);

// -- panels: each draws its part of the answer

function showProblems({ serving }) {
  const problems = serving.problems ?? [];
  byId("problems").hidden = problems.length === 0;
  byId("problems").replaceChildren(...problems.map((one) =>
    make("li", {}, make("b", {}, one.name), ` ${plain(one.detail)} ${plain(one.fix)}`)));
}

function showSummary({ summary, serving, notes }) {
  const { difference, baseline } = summary;
  const isClear = difference !== null && difference.low !== null && (difference.low > 0 || difference.high < 0);
  const tone = !isClear ? "" : difference.mean > 0 ? "is-good" : "is-bad";
  const signed = (value) => `${value > 0 ? "+" : ""}${reward(value)}`;
  const entries = [
    ["Decisions", count(summary.decisions), "in this range"],
    ["Mean reward", summary.reward === null ? "–" : reward(summary.reward.mean),
      summary.reward === null ? "no decision yet" : `${within(summary.reward).trim()} (95 %)`],
    ["Against the baseline", difference === null ? "–" : signed(difference.mean),
      difference !== null ? `${within(difference).trim()} over ${reward(baseline.mean)}`
        : baseline === null ? "no baseline yet" : "only version 0 decided", tone],
    ["Argmax quality q", summary.quality === null ? "–" : summary.quality.toFixed(3),
      summary.quality === null ? "no audit yet" : "1 is the best arm"],
    ["Model version", summary.version === null ? "–" : `${summary.version}`,
      summary.version === 0 ? "has learned nothing" : summary.version === null ? "none yet" : "in service"],
    ["Decisions per second", short(summary.per_second), "in the last minute"],
    ["Select p50 / p99", milliseconds(serving), "milliseconds"],
  ];
  byId("summary").replaceChildren(...entries.map(([name, value, more, tone]) => make("div", {},
    make("dt", {}, name), make("dd", tone ? { class: tone } : {}, value), make("dd", { class: "more" }, more))));
  const reading = [notes.log, notes.reading].filter(Boolean).join(" ");
  byId("reading").hidden = reading === "";
  byId("reading").textContent = reading;
}

function milliseconds(serving) {
  const [p50, p99] = [serving.select_p50_s, serving.select_p99_s];
  if (typeof p50 !== "number" || typeof p99 !== "number") return "–";
  return `${short(1000 * p50)} / ${short(1000 * p99)}`;
}

const rewardChart = timeChart("Mean reward over time; arrow keys read single points");
const rewardKeys = make("p", { class: "keys" },
  make("span", {}, make("i", { class: "ours" }), "all decisions"),
  make("span", {}, make("i", { class: "base" }), "baseline: version 0, which knows popularity alone"));

function showReward({ series, summary, notes }) {
  const body = bodyOf("reward");
  if (series.reward.every((mean) => mean === null)) return body.replaceChildren(note(notes.reward ?? "Nothing yet."));
  const level = summary.baseline;
  const [low, high] = extent(series.reward, level === null ? [] : [level.mean]);
  const parts = [rewardKeys, rewardChart.element];
  if (notes.reward) parts.push(note(notes.reward));
  if (notes.baseline) parts.push(note(notes.baseline));
  keep(body, parts);
  rewardChart.show({
    ...series, low, high, height: 230,
    hint: "Move over the chart, or use the arrow keys, to read single points.",
    describe: (n) => {
      const mean = series.reward[n];
      const pending = mean !== null && mean.pending > 0 ? `, ${share(mean.pending)} may still get a reward` : "";
      const base = series.baseline[n] === null ? "" : `; version 0: ${described(series.baseline[n])}`;
      return `${described(mean)}${pending}${base}`;
    },
    paint: (view) => [
      ...levelOf(level, view),
      meanLine(series.reward, "ours", view),
    ],
  });
}

function levelOf(level, { y, box }) {
  if (level === null) return [];
  const [top, bottom] = [level.high, level.low].map((value) => Math.min(box.bottom, Math.max(box.top, y(value ?? level.mean))));
  return [draw("g", { class: "base" },
    draw("rect", { class: "band", x: box.left, width: box.right - box.left, y: top, height: Math.max(0, bottom - top) }),
    draw("line", { class: "mark", x1: box.left, x2: box.right, y1: y(level.mean), y2: y(level.mean) }))];
}

function showVersions({ versions, summary, notes }) {
  const body = bodyOf("versions");
  if (versions.length === 0) return body.replaceChildren(note(notes.traffic ?? "Nothing yet."));
  const latest = versions.slice(-9).reverse();
  const rows = latest.map((one) => ({ name: `v${one.version}`, mean: one.reward }));
  const chart = whiskers("Mean reward of each version", rows, summary.baseline?.mean ?? null);
  const more = versions.length > latest.length ? [note(`Older versions (${count(versions.length - latest.length)}) are not drawn.`)] : [];
  body.replaceChildren(chart.element, ...more);
  chart.show();
  return chart;
}

const latencyChart = timeChart("Time of a select over time; arrow keys read single points");
const latencyKeys = make("p", { class: "keys" },
  make("span", {}, make("i", { class: "ours" }), "p50"),
  make("span", {}, make("i", { class: "base" }), "p99, milliseconds since this process started"));

function showLatency(windows) {
  const line = (name) => windows.map((one) => ({ mean: 1000 * one[name], low: null, high: null, pending: 0 }));
  const [p50, p99] = [line("p50_s"), line("p99_s")];
  latencyChart.show({
    starts: windows.map((one) => one.at), width_s: 10, height: 120, hint: " ",
    low: 0, high: 1.08 * Math.max(...p99.map((one) => one.mean)),
    describe: (n) => `p50 ${short(p50[n].mean)} ms, p99 ${short(p99[n].mean)} ms, ${count(windows[n].selects)} selects`,
    paint: (view) => [meanLine(p50, "ours", view), meanLine(p99, "base", view)],
  });
}

const trafficChart = timeChart("Decisions per second over time; arrow keys read single points");

function showTraffic({ series, serving, notes }) {
  const body = bodyOf("traffic");
  const numbers = facts([
    ["Rejected (too busy)", typeof serving.rejected === "number" ? count(serving.rejected) : "–"],
    ["Errors", typeof serving.errors === "number" ? count(serving.errors) : "–"],
    ["p50 / p99, ms", milliseconds(serving)],
  ]);
  if (notes.traffic) return body.replaceChildren(note(notes.traffic), numbers);
  const windows = serving.latency ?? [];
  const times = windows.length > 1 ? [latencyKeys, latencyChart.element] : [];
  keep(body, [trafficChart.element, ...times, numbers]);
  if (windows.length > 1) showLatency(windows);
  trafficChart.show({
    ...series, low: 0, high: 1.08 * Math.max(...series.per_second, 1e-3), hint: " ",
    describe: (n) => `${short(series.per_second[n])}/s, ${count(series.decisions[n])} decisions`,
    paint: (view) => bars(series.per_second, view),
  });
}

function showQuality({ audit, candidates, learner, notes }) {
  const rows = candidates.filter((one) => one.quality !== null && one.rejected === null).slice(0, 5)
    .map((one) => [`v${one.version}, when checked`, bar(one.quality), one.quality.toFixed(3)]);
  if (audit !== null) {
    const name = make("b", {}, `v${audit.version}, live`);
    rows.unshift([name, bar(audit.quality), make("b", {}, audit.quality.toFixed(3))]);
  }
  const parts = audit === null ? [note(notes.audit)] : [];
  if (rows.length > 0) parts.push(table("Argmax quality", [
    { name: "Version" }, { name: "", class: "meter" }, { name: "q", class: "number" },
  ], rows));
  if (audit !== null) parts.push(facts([["Choices audited", count(audit.count)], ["Lowest q", audit.lowest.toFixed(3)]]));
  bodyOf("quality").replaceChildren(...parts);
}

function learnerOf(learner) {
  const fresh = learner.needed === null ? [] : [["Fresh interactions", `${count(learner.fresh ?? 0)} of ${count(learner.needed)}`]];
  const took = learner.seconds === null ? [] : [["Last training took", duration(learner.seconds)]];
  const late = learner.lag_seconds > 0 ? [["A version has been due for", duration(learner.lag_seconds)]] : [];
  const wrong = learner.error ? [["What is wrong", learner.error]] : [];
  return facts([["Learner", learner.state], ...fresh, ...took, ...late, ...wrong]);
}

function showArms({ arms, notes, titles }) {
  const body = bodyOf("arms");
  if (notes.arms) return body.replaceChildren(note(notes.arms));
  const known = new Map(titles);
  const most = Math.max(...arms.winners.map((arm) => arm.share));
  const rows = arms.winners.map((arm) => [
    explainer(`arms/${encodeURIComponent(arm.id)}`, `${arm.id}`, known.get(arm.id)), bar(arm.share / most), count(arm.chosen), share(arm.share),
    arm.reward === null ? "–" : make("span", {}, reward(arm.reward.mean), make("span", { class: "soft wide-only" }, within(arm.reward))),
  ]);
  const parts = [table("Arms chosen most often", [
    { name: "Arm", class: "name" }, { name: "", class: "meter wide-only" }, { name: "Chosen", class: "number" },
    { name: "Share", class: "number" }, { name: "Mean reward", class: "number" },
  ], rows), facts([
    ["Different arms", `${count(arms.different)} of ${count(arms.all)}`],
    [arms.top === 1 ? "Share of the top arm" : `Share of the top ${count(arms.top)} (1 %)`, arms.top_share === null ? "–" : share(arms.top_share)],
    ["New arms", count(arms.fresh)],
    ["New arms chosen", arms.fresh === 0 ? "–" : `${count(arms.fresh_chosen)}, ${count(arms.fresh_choices)} times`],
  ])];
  if (arms.is_cut) parts.push(note(`Counted over the latest ${count(arms.of)} choices of this range.`));
  body.replaceChildren(...parts);
}

function showRewards({ rewards, notes }) {
  const body = bodyOf("rewards");
  const whole = rewards.delays.reduce((sum, bin) => sum + bin.count, 0);
  const parts = [];
  let chart = null;
  if (whole > 0) {
    const bins = rewards.delays.map((bin) => ({ count: bin.count, share: bin.count / whole, label: duration(bin.from_s) }));
    chart = histogram("Delays of counted rewards", bins);
    parts.push(chart.element);
  }
  if (notes.rewards) parts.push(note(notes.rewards));
  const came = rewards.statuses.reduce((sum, one) => sum + one.count, 0);
  if (came > 0) parts.push(statusTable(rewards.statuses));
  body.replaceChildren(...parts);
  chart?.show();
  return chart;
}

function statusTable(statuses) {
  const rows = statuses.map((one) => [
    make("div", {}, one.status, make("div", { class: "rule" }, one.rule)), count(one.count), share(one.share),
  ]);
  return table("What became of rewards", [
    { name: "Rewards" }, { name: "Count", class: "number" }, { name: "Share", class: "number" },
  ], rows);
}

function showModels({ candidates, learner, notes }) {
  const body = bodyOf("models");
  const parts = notes.models ? [note(notes.models)] : [];
  if (candidates.length > 0) parts.push(candidateTable(candidates));
  if (learner !== null) parts.push(learnerOf(learner));
  else if (!notes.models) parts.push(note(notes.learner));
  body.replaceChildren(...parts);
}

function candidateTable(candidates) {
  const number = (value, digits) => (value === null ? "–" : value.toFixed(digits));
  const rows = candidates.map((one) => [
    make("span", {}, `${one.version} `, tagOf(one)),
    one.at === null ? "–" : moment(one.at),
    one.interactions === null ? "–" : count(one.interactions),
    number(one.quality, 3), number(one.recall, 3), number(one.loss, 4),
    besides(one.in_service), besides(one.constant), besides(one.popularity),
    one.curve.length > 1 ? curveOf(one) : "–",
    make("div", { class: "rejection" }, one.rejected ?? ""),
  ]);
  return table("Model versions", [
    { name: "Version", class: "whole" }, { name: "Up to", class: "whole" }, { name: "Interactions learned", class: "number" },
    { name: "q", class: "number" }, { name: "Recall", class: "number" },
    { name: "Held-out loss", class: "number" }, { name: "In service", class: "number" },
    { name: "Constant", class: "number" }, { name: "Popularity", class: "number" },
    { name: "Training loss" }, { name: "Rejected because" },
  ], rows);
}

// The loss of another, and the candidate's less it with its 95 % interval.
function besides(other) {
  if (other === null) return "–";
  const signed = (value) => `${value > 0 ? "+" : ""}${value.toFixed(4)}`;
  const range = other.low === null ? "" : ` (${signed(other.low)} to ${signed(other.high)})`;
  return make("span", {}, other.loss.toFixed(4),
    make("span", { class: "soft wide-only" }, ` ${signed(other.difference)}${range}`));
}

function curveOf(one) {
  const values = one.curve.map(([, loss]) => loss);
  const [first, last] = [short(values[0]), short(values.at(-1))];
  return make("span", { class: "curve", title: `${first} → ${last}` },
    spark(values, `Training loss of version ${one.version}, from ${first} to ${last}`),
    make("span", { class: "soft" }, last));
}

function tagOf(one) {
  if (one.rejected !== null) return make("span", { class: "tag is-bad" }, "rejected");
  return one.is_current ? make("span", { class: "tag" }, "in service") : null;
}

function keep(body, parts) {
  // Replaces the pieces of a panel but not those that stay, so that they keep the focus.
  const stay = parts.filter((part) => part.parentNode === body);
  for (const child of [...body.childNodes]) if (!stay.includes(child)) child.remove();
  parts.forEach((part, n) => {
    if (body.childNodes[n] !== part) body.insertBefore(part, body.childNodes[n] ?? null);
  });
}

const PANELS = [
  [showProblems, ["serving"]],
  [showSummary, ["summary", "serving", "notes"]],
  [showShadow, ["shadow", "notes"]],
  [showReward, ["series", "summary", "notes"]],
  [showVersions, ["versions", "summary", "notes"]],
  [showTraffic, ["series", "serving", "notes"]],
  [showQuality, ["audit", "candidates", "notes"]],
  [showArms, ["arms", "notes", "titles"]],
  [showLatest, ["latest", "titles"]],
  [showRewards, ["rewards", "notes"]],
  [showModels, ["candidates", "learner", "notes"]],
  [showNames, ["serving"]],
];
const shown = new Map();

function show(answer) {
  for (const [panel, parts] of PANELS) {
    const text = JSON.stringify(parts.map((part) => answer[part]));
    if (shown.get(panel)?.text !== text) shown.set(panel, { text, chart: panel(answer) });
  }
}

window.addEventListener("resize", () => {
  rewardChart.show();
  trafficChart.show();
  for (const { chart } of shown.values()) chart?.show();
});

// -- asking

let asked = 0;
let timer = 0;
let answered = null;

function say(text, state) {
  const status = byId("status");
  status.className = state;
  if (status.lastElementChild.textContent !== text) status.lastElementChild.textContent = text;
  document.body.classList.toggle("is-stale", state === "is-lost");
}

function askAgain(after) {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(ask, after);
}

async function ask() {
  clearTimeout(timer);
  asked += 1;
  const mine = asked;
  const key = sessionStorage.getItem("fastbandit-key");
  const minutes = document.querySelector("input[name=range]:checked").value;
  try {
    const answer = await fetch(`../v1/console${minutes ? `?minutes=${minutes}` : ""}`, {
      headers: key ? { Authorization: `Bearer ${key}` } : {},
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (mine !== asked) return;
    if (answer.status === 401 || answer.status === 403) return askForKey(answer.status, key);
    if (answer.status === 501) return decline(await answer.json());
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    const report = await answer.json();
    if (mine !== asked) return;
    receive(report);
    askAgain(report.read < 1 ? WHILE_READING_MS : EVERY_MS);
  } catch (error) {
    if (mine !== asked) return;
    lose(error);
    askAgain(EVERY_MS);
  }
}

function receive(report) {
  answered = new Date();
  byId("key").hidden = true;
  byId("panels").hidden = false;
  show(report);
  say(`Live, ${count(report.events)} events in the log`, "is-live");
}

function decline(problem) {
  byId("key").hidden = true;
  say(`${problem.detail} ${problem.fix}`, "is-lost");
}

function lose(error) {
  const since = answered === null ? "" : ` since ${moment(answered)}`;
  const why = error instanceof TypeError ? "no connection" : error.name === "TimeoutError" ? "it took too long" : error.message;
  say(`The service does not answer${since}: ${why}. Asking again …`, "is-lost");
}

function askForKey(status, key) {
  say("Waiting for a key", "");
  byId("panels").hidden = true;
  byId("key").hidden = false;
  byId("rejected").textContent = !key ? "" : status === 401
    ? "The service does not know this key: try another." : "This key may not read the console: it needs the scope admin.";
  sessionStorage.removeItem("fastbandit-key");
  byId("secret").focus();
}

byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("fastbandit-key", byId("secret").value);
  byId("secret").value = "";
  ask();
});
byId("ranges").addEventListener("change", ask);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else ask();
});
ask();
