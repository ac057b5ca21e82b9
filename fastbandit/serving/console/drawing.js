// Draws: elements and small charts. Whatever comes from the service goes in as text.

const SVG = "http://www.w3.org/2000/svg";

export function make(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

export function draw(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// -- numbers and times

const counted = new Intl.NumberFormat("en");

export const count = (value) => counted.format(value);

export function short(value) {
  return new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(value);
}

export function reward(value) {
  const size = Math.abs(value);
  const digits = size === 0 || size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.001 ? 3 : 5;
  return value.toFixed(digits).replace("-", "−");
}

export function share(value) {
  const percent = 100 * value;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  return `${percent.toFixed(percent === 0 || percent >= 10 ? 0 : 1)} %`;
}

export function plain(text) {
  // Makes characters visible that are none themselves but turn or hide others.
  return text.replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) =>
    `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

export function duration(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [0.001, "ms"]];
  if (seconds === 0) return "0";
  const [size, unit] = units.find(([size]) => seconds >= size) ?? [0.001, "ms"];
  return `${short(seconds / size)} ${unit}`;
}

export function clock(at, span) {
  const given = span > 2 * 86400000
    ? { month: "short", day: "numeric" }
    : { hour: "2-digit", minute: "2-digit", hour12: false };
  return new Intl.DateTimeFormat("en", given).format(at);
}

export function moment(at) {
  const given = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  return new Intl.DateTimeFormat("en", given).format(at);
}

// -- scales

function niceStep(span, wanted) {
  const rough = span / Math.max(1, wanted) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= rough);
}

function ticks(low, high, wanted) {
  const step = niceStep(high - low, wanted);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) {
    found.push({ at: n * step, label: (n * step).toFixed(digits).replace(/^-(?=0(\.0*)?$)/, "").replace("-", "−") });
  }
  return found;
}

function frame(svg, height, { left = 44, bottom = 20, top = 8, right = 6 } = {}) {
  const width = Math.max(220, svg.clientWidth || 320);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  return { left, top, right: width - right, bottom: height - bottom, width, height };
}

function scale(low, high, from, to) {
  const size = high - low || 1;
  return (value) => from + ((value - low) / size) * (to - from);
}

function axes(box, { low, high, starts, step }) {
  const y = scale(low, high, box.bottom, box.top);
  const lines = ticks(low, high, Math.max(2, (box.bottom - box.top) / 42)).map(({ at, label }) => draw("g", {},
    draw("line", { class: "grid", x1: box.left, x2: box.right, y1: y(at), y2: y(at) }),
    draw("text", { x: box.left - 7, y: y(at) + 4, "text-anchor": "end" }, label)));
  const x = scale(starts[0], starts.at(-1) + step, box.left, box.right);
  const every = Math.max(1, Math.ceil(starts.length / Math.max(2, Math.floor((box.right - box.left) / 92))));
  const span = starts.at(-1) + step - starts[0];
  const times = starts.filter((_, n) => n % every === 0).map((at) =>
    draw("text", { x: x(at), y: box.height - 4, "text-anchor": "start" }, clock(at, span)));
  return { x, y, marks: [...lines, ...times] };
}

// -- charts over time

export function timeChart(label) {
  // A chart whose buckets are read by pointer or by arrow keys; `show` draws it anew.
  const svg = draw("svg", { class: "chart", role: "img", tabindex: "0", "aria-label": label });
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const element = make("figure", {}, svg, readout);
  let chosen = null;
  let given = null;

  function show(next = given) {
    if (next === null) return;
    given = next;
    const { starts, width_s: step } = given;
    if (chosen !== null && chosen >= starts.length) chosen = null;
    const box = frame(svg, given.height ?? 170);
    const { x, y, marks } = axes(box, { ...given, step: 1000 * step });
    const middle = (n) => x(starts[n] + 500 * step);
    svg.replaceChildren(...marks, ...given.paint({ x, y, middle, box, chosen }));
    if (chosen !== null) {
      svg.append(draw("line", { class: "cursor", x1: middle(chosen), x2: middle(chosen), y1: box.top, y2: box.bottom }));
    }
    readout.textContent = chosen === null ? given.hint : `${moment(starts[chosen])}: ${given.describe(chosen)}`;
  }

  function choose(next) {
    if (next === chosen || given === null) return;
    chosen = next;
    show();
  }

  svg.addEventListener("pointermove", (event) => {
    const { starts } = given;
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left - 44) / (box.width - 50);
    choose(Math.min(starts.length - 1, Math.max(0, Math.floor(at * starts.length))));
  });
  svg.addEventListener("pointerleave", () => choose(null));
  svg.addEventListener("blur", () => choose(null));
  svg.addEventListener("keydown", (event) => {
    const last = given.starts.length - 1;
    const moves = { ArrowLeft: (chosen ?? last + 1) - 1, ArrowRight: (chosen ?? -1) + 1, Home: 0, End: last };
    if (event.key === "Escape") choose(null);
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(Math.min(last, Math.max(0, moves[event.key])));
  });
  return { element, show };
}

export function meanLine(means, name, { middle, y, box }) {
  // A line of means with their bands: broken where there is none, dotted where some are pending.
  const clamp = (value) => Math.min(box.bottom, Math.max(box.top, y(value)));
  const group = draw("g", { class: name });
  for (const run of runs(means)) {
    const banded = run.filter((n) => means[n].low !== null);
    const upper = banded.map((n) => `${middle(n)},${clamp(means[n].high)}`);
    const lower = banded.map((n) => `${middle(n)},${clamp(means[n].low)}`).reverse();
    if (banded.length > 1) group.append(draw("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
    if (run.length === 1) group.append(draw("circle", { cx: middle(run[0]), cy: clamp(means[run[0]].mean), r: 2.5 }));
    const isPending = (n) => means[n].pending > 0.05;
    for (const piece of pieces(run, isPending)) {
      const points = piece.at.map((n) => `${middle(n)},${clamp(means[n].mean)}`).join(" ");
      group.append(draw("polyline", { class: piece.isPending ? "line is-pending" : "line", points }));
    }
  }
  return group;
}

function runs(means) {
  const found = [];
  means.forEach((mean, n) => {
    if (mean === null) return;
    if (n > 0 && means[n - 1] !== null) found.at(-1).push(n);
    else found.push([n]);
  });
  return found;
}

function pieces(run, isPending) {
  const found = [];
  for (let n = 1; n < run.length; n += 1) {
    const pending = isPending(run[n]);
    if (found.length > 0 && found.at(-1).isPending === pending) found.at(-1).at.push(run[n]);
    else found.push({ isPending: pending, at: [run[n - 1], run[n]] });
  }
  return found;
}

export function extent(means, more = []) {
  // The range of an axis: all means, and as much of the bands as a usual one needs.
  const some = means.filter((mean) => mean !== null);
  const halves = some.filter((mean) => mean.low !== null).map((mean) => mean.high - mean.mean).sort((a, b) => a - b);
  const half = halves.length > 0 ? halves[Math.floor(halves.length / 2)] : 0;
  const values = [...some.map((mean) => mean.mean), ...more];
  let [low, high] = [Math.min(...values) - half, Math.max(...values) + half];
  if (low >= high) [low, high] = [low - 0.5, high + 0.5];
  const room = 0.06 * (high - low);
  const isNearZero = Math.min(...values) >= 0 && low < 0.4 * high;
  return isNearZero ? [0, high + room] : [low - room, high + room];
}

// -- bars, whiskers, sparks

export function bars(values, { middle, y, box, chosen }) {
  const wide = Math.max(1, (box.right - box.left) / values.length - 2);
  return values.map((value, n) => draw("rect", {
    class: n === chosen ? "fill is-chosen" : "fill",
    x: middle(n) - wide / 2, width: wide, y: y(value), height: Math.max(0, y(0) - y(value)), rx: Math.min(2, wide / 3),
  }));
}

export function histogram(label, bins) {
  const svg = draw("svg", { class: "chart", role: "img", "aria-label": label });
  const show = () => {
    const box = frame(svg, 150, { left: 8, top: 18 });
    const most = Math.max(...bins.map((bin) => bin.count));
    const y = scale(0, most, box.bottom, box.top);
    const wide = (box.right - box.left) / bins.length;
    svg.replaceChildren(...bins.flatMap((bin, n) => {
      const x = box.left + n * wide;
      const every = Math.ceil(52 / wide);
      return [
        draw("rect", { class: "fill", x: x + 1, width: Math.max(1, wide - 2), y: y(bin.count), height: box.bottom - y(bin.count), rx: 2 }),
        wide > 34 && bin.count > 0 ? draw("text", { x: x + wide / 2, y: y(bin.count) - 5, "text-anchor": "middle" }, share(bin.share)) : null,
        n % every === 0 ? draw("text", { x, y: box.height - 4, "text-anchor": n === 0 ? "start" : "middle" }, bin.label) : null,
      ].filter((mark) => mark !== null);
    }));
  };
  return { element: svg, show };
}

export function whiskers(label, rows, mark) {
  const svg = draw("svg", { class: "chart", role: "img", "aria-label": label });
  const show = () => {
    const box = frame(svg, 24 * rows.length + 26, { left: 44, right: 70 });
    const [low, high] = extent(rows.map((row) => row.mean), mark === null ? [] : [mark]);
    const x = scale(low, high, box.left, box.right);
    const clamp = (value) => Math.min(box.right, Math.max(box.left, x(value)));
    const grid = ticks(low, high, 4).flatMap(({ at, label }) => [
      draw("line", { class: "grid", x1: x(at), x2: x(at), y1: 4, y2: box.bottom }),
      draw("text", { x: x(at), y: box.height - 4, "text-anchor": "middle" }, label),
    ]);
    const drawn = rows.map(({ name, mean }, n) => {
      const y = 18 + 24 * n;
      return draw("g", {},
        draw("text", { x: 0, y: y + 4 }, name),
        mean.low === null ? null : draw("line", { class: "whisker", x1: clamp(mean.low), x2: clamp(mean.high), y1: y, y2: y }),
        draw("circle", { class: "ours", cx: clamp(mean.mean), cy: y, r: 4 }),
        draw("text", { x: box.width, y: y + 4, "text-anchor": "end" }, reward(mean.mean)));
    });
    const line = mark === null ? [] : [draw("line", { class: "mark", x1: x(mark), x2: x(mark), y1: 4, y2: box.bottom })];
    svg.replaceChildren(...grid, ...line, ...drawn);
  };
  return { element: svg, show };
}

export function bar(part) {
  return draw("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { class: "fill", width: Math.max(0.5, 100 * Math.min(1, part)), height: 10, rx: 2 }));
}

export function spark(values, label) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = scale(0, values.length - 1, 2, 118);
  const y = scale(low, high, 25, 3);
  const points = values.map((value, n) => `${x(n).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return draw("svg", { class: "spark ours", role: "img", viewBox: "0 0 120 28", "aria-label": label },
    draw("polyline", { class: "line", points }),
    draw("circle", { cx: x(values.length - 1), cy: y(values.at(-1)), r: 2.5 }));
}
