// Drawing: elements of SVG, numbers in print, scales. Colours come from the style sheet, so that they follow the screen.

const SVG = "http://www.w3.org/2000/svg";
const REACH = 1.959963984540054; // standard errors from a value to the ends of its 95 % interval, where no cell says otherwise

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function wrapped(tag, children, className) {
  const element = make(tag, undefined, className);
  element.append(...children);
  return element;
}

// Numbers in print.

function plain(value, digits) {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size < 1e-4 || size >= 1e15) return value.toExponential(digits - 1);
  return size < 1000 ? String(rounded) : Math.round(digits > 2 ? value : rounded).toLocaleString("en");
}

const isZero = (value) => Math.abs(value) <= payload.rounding;
const percent = (share) => `${plain(100 * share, 3)} %`;
const signed = (value, digits = 3) => (isZero(value) ? "0" : `${value > 0 ? "+" : ""}${plain(value, digits)}`);
const amount = (value, digits = 3) => (isZero(value) ? "0" : plain(value, digits));
const counted = (rows) => (rows < 10 && rows !== Math.round(rows) ? plain(rows, 2) : Math.round(rows).toLocaleString("en"));
const interval = ({ value, stderr, reach = REACH }) => (stderr === null ? [value, value] : [value - reach * stderr, value + reach * stderr]);

// Widths of text, measured without drawing it; what does not fit ends in an ellipsis.

const ruler = document.createElement("canvas").getContext("2d");

function widthOf(text, size = 12) {
  ruler.font = `${size}px system-ui, "Segoe UI", Roboto, Arial, sans-serif`;
  return ruler.measureText(text).width;
}

function cut(text, width, size = 12) {
  if (widthOf(text, size) <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (widthOf(`${text.slice(0, middle)}…`, size) <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

function label(text, x, y, className = "", more = {}) {
  return svg("text", { x, y, class: className, ...more }, text);
}

// Scales.

function linear([low, high], [from, to]) {
  return (value) => from + ((to - from) * (value - low)) / (high - low);
}

function around(values, floor) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  return high - low > floor ? [low, high] : [-1, 1];
}

function ticks([low, high], count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, k) => (first + k) * step);
}

function axis(domain, scale, top, bottom, width) {
  const lines = [];
  let free = -Infinity;
  for (const tick of ticks(domain, Math.max(3, Math.min(6, width / 70)))) {
    const [x, text] = [scale(tick), plain(tick, 6)];
    lines.push(svg("line", { x1: x, x2: x, y1: top, y2: bottom, class: Math.abs(tick) < 1e-12 ? "zero" : "grid" }));
    if (x - widthOf(text, 11) / 2 < free) continue;
    free = x + widthOf(text, 11) / 2 + 6;
    lines.push(label(text, x, bottom + 14, "tick middle"));
  }
  return svg("g", { class: "axis", "data-domain": domain.join(" ") }, ...lines);
}

function canvas(width, height, ...children) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...children);
}

// What a mark says when the pointer is over it.

const tipLines = new WeakMap();

function withTip(mark, lines) {
  tipLines.set(mark, lines.filter(([, text]) => text !== null && text !== undefined && text !== ""));
  mark.classList.add("mark");
  return mark;
}

const tip = document.getElementById("tip");

function showTip(lines, x, y) {
  tip.hidden = false;
  tip.replaceChildren(...lines.flatMap(([key, text]) => [make("span", key), make("bdi", String(text))]));
  const fitted = (at, size, room) => `${Math.max(4, Math.min(at + 14, room - size - 4))}px`;
  tip.style.left = fitted(x, tip.offsetWidth, window.innerWidth);
  tip.style.top = fitted(y, tip.offsetHeight, window.innerHeight);
}

document.addEventListener("pointermove", ({ target, clientX, clientY }) => {
  const mark = target.closest?.(".mark, .term");
  if (mark && tipLines.has(mark)) showTip(tipLines.get(mark), clientX, clientY);
  else tip.hidden = true;
});

// What moves away from under the pointer says no more; a term that has the focus goes on.

document.addEventListener("scroll", () => document.activeElement?.matches(".term") || (tip.hidden = true), { passive: true });

function facts(record, names) {
  const [low, high] = interval(record);
  return [
    ...names,
    ["output", record.output],
    ["effect", signed(record.value, 6)],
    ["95 % interval", record.stderr === null ? "" : `${signed(low, 4)} to ${signed(high, 4)}`],
    ["mean of the model at the level", record.mean === null || record.mean === undefined ? "" : `${signed(record.mean, 4)} from its overall mean`],
    ["rows", record.rows === null ? "" : counted(record.rows)],
    ["share of rows", percent(record.share)],
  ];
}
