// Charts: each takes what it shows and a width in pixels, and returns a drawing.

const STEP = 21; // pixels of a line of names
const TIGHT = 16; // the same where there are many of them
const FEW_LINES = 12; // lines up to which they are not many
const EDGE = 8; // pixels between marks and the end of an axis

const signOf = (value) => (isZero(value) ? "none" : value < 0 ? "negative" : "positive");

function nameWidth(names, width, most) {
  return Math.min(most * width, Math.max(40, ...names.map((name) => widthOf(name)))) + 8;
}

function names(list, left, step = STEP) {
  return list.map((name, k) => withTip(label(cut(name, left - 8), left - 8, step * (k + 0.5) + 4, "end"), [["", name]]));
}

// An interval: a line with a bar at each end, or a point where it leaves the chart.

function whisker(scale, low, high, y, [least, most] = [-Infinity, Infinity]) {
  const [a, b] = [scale(Math.max(low, least)), scale(Math.min(high, most))];
  const left = low < least ? `M${a + 4},${y - 3}l-4,3l4,3` : `M${a},${y - 3}v6`;
  const right = high > most ? `M${b - 4},${y - 3}l4,3l-4,3` : `M${b},${y - 3}v6`;
  return svg("path", { class: "whisker", d: `M${a},${y}H${b}${left}${right}` });
}

// Importance: amounts with their intervals, the largest first.

function importanceChart(lines, width) {
  const shown = lines.map((line) => line.name);
  const left = nameWidth(shown, width, 0.4);
  const values = lines.flatMap((line) => (line.stderr === null ? [line.value] : [line.value, ...interval(line)]));
  const domain = around(line0(values), 0);
  const room = 58;
  const scale = linear(domain, [left + (domain[0] < 0 ? room : 0), width - room]);
  const height = STEP * lines.length;
  const marks = lines.flatMap((line, k) => {
    const [y, [low, high]] = [STEP * (k + 0.5), interval(line)];
    const [a, b] = [scale(Math.min(0, line.value)), scale(Math.max(0, line.value))];
    const bar = svg("rect", { x: a, width: Math.max(0.5, b - a), y: y - 7, height: 14, class: line.value < 0 ? "negative" : "amount" });
    const tipFacts = [["feature", line.name], ["output", line.output], [payload.words.importance, plain(line.value, 5)], ["standard error", line.stderr === null ? "" : plain(line.stderr, 2)]];
    const end = line.value < 0 ? scale(Math.min(line.value, low)) - 5 : scale(Math.max(line.value, high)) + 5;
    const number = label(amount(line.value), end, y + 4, line.value < 0 ? "number end" : "number");
    return [withTip(bar, tipFacts), ...(line.stderr === null ? [] : [whisker(scale, Math.max(domain[0], low), high, y)]), number];
  });
  return canvas(width, height + 22, axis(domain, scale, 0, height, width - left - room), ...names(shown, left), ...marks);
}

const line0 = (values) => (values.some((value) => value < 0) ? values : values.map((value) => Math.max(0, value)));

// The effect of one feature: a line of print for each level, with its bar (or, where levels have an order, a point on
// a line), its interval, the mean of the model there, its value and its share of rows.

function effectChart(lines, width, domain) {
  const shown = lines.map((line) => line.name);
  const left = nameWidth(shown, width, 0.36);
  const right = width < 320 ? 70 : 148;
  const step = lines.length > FEW_LINES ? TIGHT : STEP;
  const scale = linear(domain, [left + EDGE, width - right - EDGE]);
  const height = step * lines.length;
  const marks = lines.flatMap((line, k) => effectLine(line, step * (k + 0.5), scale, width, right, domain));
  const heading = [label("effect", width - right + 66, height + 14, "tick end")];
  if (right > 80) heading.push(label("share of rows", width, height + 14, "tick end"));
  const way = lines.map((line, k) => (line.ordered ? `${scale(line.value)},${step * (k + 0.5)}` : null)).filter(Boolean);
  const line = way.length > 1 ? [svg("polyline", { points: way.join(" "), class: "way" })] : [];
  return canvas(width, height + 22, axis(domain, scale, 0, height, width - left - right), ...line, ...names(shown, left, step), ...marks, ...heading);
}

function effectLine(line, y, scale, width, right, domain) {
  const [zero, at] = [scale(0), scale(line.value)];
  const sign = `${signOf(line.value)}${line.few ? " few" : ""}`;
  const mark = line.ordered
    ? svg("circle", { cx: at, cy: y, r: 4.5, class: sign })
    : svg("rect", { x: Math.min(zero, at), width: Math.max(0.5, Math.abs(at - zero)), y: y - 6, height: 12, class: sign });
  const marks = [withTip(mark, facts(line, [[line.feature, line.name]]))];
  if (line.stderr !== null) marks.push(whisker(scale, ...interval(line), y, domain));
  if (line.mean !== null) marks.push(svg("path", { class: "mean", d: `M${scale(line.mean)},${y - 4}l4,4l-4,4l-4,-4z` }));
  marks.push(label(signed(line.value), width - right + 66, y + 4, "number end"));
  if (right > 80) marks.push(label(percent(line.share), width, y + 4, "number faint end"));
  return marks;
}

// Many ordered levels: a curve, with names at even distances, the first and the last among them.

function curveChart(lines, width, domain) {
  const height = 200;
  const left = 52;
  const x = linear([0, lines.length - 1], [left + EDGE, width - EDGE - 4]);
  const y = linear(domain, [height - EDGE, EDGE]);
  const ordered = lines.filter((line) => line.ordered);
  const path = ordered.map((line) => `${x(line.place)},${y(line.value)}`).join(" ");
  const marks = lines.flatMap((line) => {
    const dot = svg("circle", { cx: x(line.place), cy: y(line.value), r: 3, class: `${signOf(line.value)}${line.few ? " few" : ""}` });
    const [low, high] = interval(line).map((end) => y(Math.max(domain[0], Math.min(domain[1], end))));
    const rule = line.stderr === null ? [] : [svg("line", { class: "whisker", x1: x(line.place), x2: x(line.place), y1: low, y2: high })];
    return [...rule, withTip(dot, facts(line, [[line.feature, line.name]]))];
  });
  const every = Math.ceil((16 * (lines.length - 1)) / (width - left));
  const named = lines.filter(({ place }) => place === lines.length - 1 || (place % every === 0 && lines.length - 1 - place >= every));
  const below = named.map((line) =>
    withTip(label(cut(line.name, 90, 11), x(line.place) + 4, height + 10, "tick end", { transform: `rotate(-50 ${x(line.place) + 4} ${height + 10})` }), [["", line.name]])
  );
  const rules = ticks(domain, 5).flatMap((tick) => [
    svg("line", { x1: left, x2: width, y1: y(tick), y2: y(tick), class: Math.abs(tick) < 1e-12 ? "zero" : "grid" }),
    label(plain(tick, 6), left - 4, y(tick) + 4, "tick end"),
  ]);
  return canvas(width, height + 90, ...rules, svg("polyline", { points: path, class: "way" }), ...marks, ...below);
}

const ROOMY = 14; // columns of a map up to which its cells have room for numbers

// A pair: a heat map of values and rows; crossed cells never occurred, cells of few rows are faded.

const RAMP = ["#0a3a72", "#3f7fbf", "#9ec3e6", "#f4f4f4", "#f9c78d", "#e58a2b", "#8f4400"];

function rampColour(value, bound) {
  const at = Math.max(0, Math.min(RAMP.length - 1.000001, ((value / bound + 1) / 2) * (RAMP.length - 1)));
  const [low, high] = [RAMP[Math.floor(at)], RAMP[Math.floor(at) + 1]];
  const mixed = [1, 3, 5].map((k) => {
    const [a, b] = [low, high].map((colour) => parseInt(colour.slice(k, k + 2), 16));
    return Math.round(a + (b - a) * (at % 1));
  });
  return `rgb(${mixed.join()})`;
}

function heatChart({ first, second, rows, columns, cells }, bound) {
  const roomy = columns.length <= ROOMY;
  const [wide, high] = roomy ? [60, rows.length > FEW_LINES ? 27 : 34] : [20, 20];
  const left = Math.min(170, Math.max(...rows.map((name) => widthOf(name)), widthOf(first, 11))) + 10;
  const top = 18;
  const [width, height] = [wide * columns.length, high * rows.length];
  const marks = cells.flatMap((line) => heatCell(line, left + wide * line.column, top + high * line.row, wide, high, bound, roomy));
  const slanted = columns.some((name) => widthOf(name) > wide - 4);
  const under = columns.map((name, k) => {
    const [x, y] = [left + wide * (k + 0.5), top + height + 14];
    if (!slanted) return label(name, x, y, "middle");
    return withTip(label(cut(name, 120), x + 5, y - 2, "end", { transform: `rotate(-40 ${x + 5} ${y - 2})` }), [["", name]]);
  });
  const deep = slanted ? 0.65 * Math.min(120, Math.max(...columns.map((name) => widthOf(name)))) + 22 : 20;
  const overhang = slanted ? Math.max(0, 0.77 * Math.min(120, widthOf(columns[0])) - left - wide / 2) : 0;
  const side = rows.map((name, k) => withTip(label(cut(name, left - 10), left - 8, top + high * (k + 0.5) + 4, "end"), [["", name]]));
  const [x, total] = [-overhang, Math.max(left + width + 4, left + 170)];
  const titles = [label(cut(first, left - 10, 11), left - 8, 12, "tick end"), label(cut(second, total - left, 11), left + width / 2, top + height + deep + 12, "tick middle")];
  const legend = rampLegend(left, top + height + deep + 22, bound);
  const drawn = canvas(total + overhang, top + height + deep + 56, ...titles, ...side, ...under, ...marks, legend);
  drawn.setAttribute("viewBox", `${x} 0 ${total + overhang} ${top + height + deep + 56}`);
  return drawn;
}

function heatCell(line, x, y, wide, high, bound, roomy) {
  if (!line.observed) {
    const cross = svg("path", { class: "never", d: `M${x + wide / 2 - 5},${y + high / 2 - 5}l10,10m0,-10l-10,10` });
    const cover = svg("rect", { x, y, width: wide, height: high, class: "blank" });
    return [cross, withTip(cover, [...line.names, ["", "never observed"]])];
  }
  const dark = line.value < -0.5 * bound || line.value > 0.7 * bound;
  const ink = dark && !line.few ? "cell light" : "cell dark";
  const ground = line.few ? [svg("rect", { x, y, width: wide, height: high, class: "ground" })] : []; // or a dark page would shine through
  const box = svg("rect", { x, y, width: wide, height: high, fill: rampColour(line.value, bound), class: `box${line.few ? " few" : ""}` });
  const [middle, base] = [x + wide / 2, y + high / 2];
  const print = roomy
    ? [label(signed(line.value, 2), middle, base - (line.rows === null ? -4 : 2), `${ink} middle`)]
    : [label(isZero(line.value) ? "" : line.value < 0 ? "−" : "+", middle, base + 4, `${ink} middle`)];
  if (roomy && line.rows !== null) print.push(label(`n ${counted(line.rows)}`, middle, base + 11, `${ink} count middle`));
  return [...ground, withTip(box, facts(line, line.names)), ...print];
}

function rampLegend(x, y, bound) {
  const parts = Array.from({ length: 40 }, (_, k) => svg("rect", { x: x + 4 * k, y, width: 4.5, height: 8, fill: rampColour(((k + 0.5) / 20 - 1) * bound, bound) }));
  const ends = [label(signed(-bound, 2), x, y + 20, "tick"), label("0", x + 80, y + 20, "tick middle"), label(signed(bound, 2), x + 160, y + 20, "tick end")];
  return svg("g", {}, ...parts, ...ends);
}

// The network: features on a circle, pairs as lines.

function networkChart({ nodes, edges }, width) {
  const most = Math.min(width, 560);
  const named = Math.min(130, Math.max(...nodes.map(({ name }) => widthOf(name))), 0.28 * most);
  const radius = Math.min((most - 2 * named - 40) / 2, 40 + 14 * nodes.length);
  const size = 2 * (radius + named) + 40;
  const [cx, cy] = [size / 2, radius + 34];
  const angle = (k) => (2 * Math.PI * k) / nodes.length - Math.PI / 2;
  const at = new Map(nodes.map(({ feature }, k) => [feature, [cx + radius * Math.cos(angle(k)), cy + radius * Math.sin(angle(k))]]));
  const [widest, largest] = [edges, nodes].map((list) => Math.max(...list.map(({ value }) => value), Number.MIN_VALUE));
  const lines = edges.map(({ first, second, value, output }) => {
    const [[x1, y1], [x2, y2]] = [at.get(first), at.get(second)];
    const d = `M${x1},${y1}Q${cx + (x1 + x2 - 2 * cx) / 4},${cy + (y1 + y2 - 2 * cy) / 4} ${x2},${y2}`;
    const path = svg("path", { class: "link", d, "stroke-width": 0.8 + 8 * (value / widest) });
    return withTip(path, [["pair", `${first} × ${second}`], ["output", output], ["mean size of the interaction", plain(value, 4)]]);
  });
  const dots = nodes.flatMap(({ feature, name, value }, k) => {
    const [x, y] = at.get(feature);
    const [c, s] = [Math.cos(angle(k)), Math.sin(angle(k))];
    const side = Math.abs(c) < 0.2 ? "middle" : c > 0 ? "" : "end";
    const dot = svg("circle", { cx: x, cy: y, r: 3 + 9 * Math.sqrt(value / largest), class: "amount" });
    const tipFacts = [["feature", name], ["importance", plain(value, 4)]];
    return [withTip(dot, tipFacts), withTip(label(cut(name, named), x + 14 * c, y + 16 * s + 4, side), tipFacts)];
  });
  return canvas(size, 2 * radius + 68, ...lines, ...dots);
}

// One row: the way from the mean to the value there, a step for each feature.

function waterfallChart(steps, width) {
  const shown = steps.map((step) => step.name);
  const left = nameWidth(shown, width, 0.42);
  const ends = steps.flatMap(({ start, end, stderr }) => [start, end, ...(stderr ? [end - REACH * stderr, end + REACH * stderr] : [])]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const domain = high - low > payload.rounding ? [low, high] : [low - 1, high + 1];
  const room = 66;
  const scale = linear(domain, [left + room, width - room]);
  const height = STEP * steps.length;
  const marks = steps.flatMap((step, k) => waterfallStep(step, STEP * (k + 0.5), scale));
  const base = scale(steps[0].end);
  const start = svg("line", { x1: base, x2: base, y1: 0, y2: height, class: "start" });
  return canvas(width, height + 22, axis(domain, scale, 0, height, width - left - 2 * room), start, ...names(shown, left), ...marks);
}

function waterfallStep({ kind, name, start, end, value, stderr, output }, y, scale) {
  const error = known(stderr) ? stderr : null;
  const [low, high] = error === null ? [end, end] : [end - REACH * error, end + REACH * error];
  const tipFacts = [["step", name], ["output", output], ["value", kind === "base" || kind === "total" ? plain(value, 6) : signed(value, 6)], ["standard error", error === null ? "" : plain(error, 2)], ["reached", plain(end, 6)]];
  if (kind === "base" || kind === "total") {
    const tick = svg("line", { x1: scale(end), x2: scale(end), y1: y - 9, y2: y + 9, class: "stop" });
    return [withTip(tick, tipFacts), ...(error ? [whisker(scale, low, high, y)] : []), label(plain(end, 4), scale(high) + 6, y + 4, "number strong")];
  }
  const [a, b] = [scale(start), scale(end)].sort((p, q) => p - q);
  const bar = svg("rect", { x: a, width: Math.max(0.5, b - a), y: y - 7, height: 14, class: signOf(value) });
  const whiskers = error ? [whisker(scale, low, high, y)] : [];
  const down = value < 0;
  const number = label(signed(value), down ? Math.min(a, scale(low)) - 4 : Math.max(b, scale(high)) + 4, y + 4, down ? "number end" : "number");
  return [withTip(bar, tipFacts), ...whiskers, number];
}
