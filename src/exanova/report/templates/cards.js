// Figures: a heading, which output is drawn, notes, a picture, the table behind it. Pictures are drawn when they come
// near, and drawn again when the output, the scale or the width change; before printing all at once, at the width of paper.

const NEAR = "600px"; // how far from the window a picture is drawn
const MANY = 24; // figures of effects that are shown at first, and the most that are printed
const LEVELS = { bars: 30, ordered: 40, grid: 30 }; // levels of a picture
const PAPER = { half: 290, whole: 640 }; // pixels of a picture on paper

const on = (id, event, act) => document.getElementById(id)?.addEventListener(event, act);

const GAP = 16; // pixels between cards, one below the other

// Cards fill two columns without holes: each spans as many one-pixel lines of its grid as it is high.

const heights = new ResizeObserver((entries) => {
  for (const { target } of entries) target.style.gridRowEnd = `span ${Math.ceil(target.getBoundingClientRect().height) + GAP}`;
});

const pictures = new Map(); // holder -> { draw, near, stale, turn }
let onPaper = false;

function figure({ key, title, notes = [], description, draw, table, file = title }) {
  const heading = wrapped("h3", [make("bdi", title)]);
  const which = make("div", undefined, "which");
  const holder = make("div", undefined, "picture");
  holder.id = key;
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", `${description} The table below holds the numbers.`);
  const caption = wrapped("figcaption", [heading, which, ...notes.map((note) => make("div", note))]);
  const card = wrapped("figure", [caption, holder, makeTable(table, "Table", file)]);
  card.dataset.name = title;
  watch(holder, draw);
  heights.observe(card);
  return card;
}

function watch(holder, draw) {
  pictures.set(holder, { draw, near: false, stale: true, turn: 0 });
  observer.observe(holder);
}

function draw(holder) {
  const picture = pictures.get(holder);
  if (!onPaper && !holder.clientWidth) return; // hidden by the find box: drawn when it comes back
  const wide = holder.closest(".cards") === null;
  const width = onPaper ? (wide ? PAPER.whole : PAPER.half) : Math.min(holder.clientWidth, 1000);
  const drawn = picture.draw(width);
  holder.replaceChildren(drawn);
  const size = Number(drawn.getAttribute("width"));
  const card = holder.closest("figure");
  card.classList.toggle("broad", size > PAPER.half + 10);
  card.classList.toggle("whole", size > 560);
  for (const which of card.querySelectorAll(".which")) nameOutput(which);
  picture.stale = false;
  holder.dataset.drawn = String(++picture.turn);
}

function nameOutput(element) {
  const several = payload.outputs.length > 1 ? ` (${choice.output + 1} of ${payload.outputs.length})` : "";
  element.replaceChildren("Output: ", make("bdi", outputName()), several);
}

const outputName = () => payload.outputs_shown[choice.output];

// Where the log or the logit of an output was decomposed, the output itself is shown beside it.

const back = { log: Math.exp, logit: (value) => 1 / (1 + Math.exp(-value)) }[payload.link];
const responseName = () => outputName().slice(payload.link.length + 1, -1);

function redraw(which = () => true) {
  for (const [holder, picture] of pictures)
    if (which(holder)) {
      picture.stale = true;
      if (picture.near) draw(holder);
    }
}

const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const picture = pictures.get(target);
      if (!picture) continue;
      picture.near = isIntersecting;
      if (isIntersecting && picture.stale) draw(target);
    }
  },
  { rootMargin: NEAR }
);

// Scales: of each chart alone, of all charts of an output, or of all outputs too.

// Intervals of few rows would leave no room for the others: they do not make a scale, unless there are no others.

function reached(s, output) {
  const lines = records(s, output);
  const all = lines.every(({ few }) => few);
  const ends = (line) => (line.few && !all ? [line.value] : interval(line));
  return lines.flatMap((line) => [...ends(line), ...(line.mean === null ? [] : [line.mean])]);
}

function domainOf(s) {
  const outputs = choice.scale === "outputs" ? payload.outputs.keys() : [choice.output];
  const subsets = choice.scale === "own" ? [s] : payload.drawn.map((i) => effects.number.get(String(i)));
  let [low, high] = [0, 0];
  for (const k of outputs) for (const of of subsets) for (const end of reached(of, k)) [low, high] = [Math.min(low, end), Math.max(high, end)];
  return high - low > payload.rounding ? [low, high] : [-1, 1];
}

function boundOf(s) {
  const outputs = choice.scale === "outputs" ? payload.outputs.keys() : [choice.output];
  const subsets = choice.scale === "own" ? [s] : payload.pairs.map((pair) => effects.number.get(pair.join()));
  let bound = payload.rounding;
  for (const k of outputs) for (const of of subsets) for (let c = 0; c < effects.cells[of]; c++) bound = Math.max(bound, Math.abs(valueAt(of, c, k)));
  return bound || 1;
}

// Importance, sorted for the output that is shown.

const MOST = 20;

function importanceLines(output = choice.output) {
  const parts = payload.tables.importance;
  const lines = unpack(parts[output]).map((line) => ({ stderr: null, ...line }));
  return lines.map((line) => ({ ...line, stderr: known(line.stderr) ? line.stderr : null })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}

const mostImportant = () => importanceLines().filter(({ value }, k, all) => k < MOST && (!k || all.length <= MOST || !isZero(value)));

const shownName = new Map(features.map(({ name }, i) => [name, nameOf(i)]));

function importanceFigure() {
  sources.set("importance", perOutput(importanceLines, payload.listed.importance.filter(({ field }) => field !== "output")));
  const total = features.length;
  const cutNote = total > MOST ? [`The most important of ${total.toLocaleString("en")} features; the table has all.`] : [];
  return figure({
    key: "importance",
    title: "Importance of features",
    notes: [...payload.words.importance_notes, ...cutNote],
    description: "Bars: importance of each feature for the chosen output.",
    table: "importance",
    draw: (width) => importanceChart(mostImportant().map((line) => ({ ...line, name: shownName.get(line.feature) })), width),
  });
}

// Effects of single features.

function effectLines(i, output = choice.output) {
  const s = effects.number.get(String(i));
  return records(s, output).map((line) => {
    const [c] = line.codes;
    return { ...line, level: features[i].levels[c], name: levelOf(i, c), feature: nameOf(i), ordered: Boolean(features[i].places?.[c]), place: c };
  });
}

function carrying(lines, most) {
  if (lines.length <= most) return lines;
  const amount = ({ share, value }) => share * Math.abs(value);
  const kept = new Set([...lines].sort((a, b) => amount(b) - amount(a)).slice(0, most));
  return lines.filter((line) => kept.has(line));
}

function drawEffect(i, width) {
  const [lines, domain] = [effectLines(i), domainOf(effects.number.get(String(i)))];
  if (features[i].places && lines.length > LEVELS.ordered) return curveChart(lines, width, domain);
  return effectChart(features[i].places ? lines : carrying(lines, LEVELS.bars), width, domain);
}

function effectFigure(i) {
  const key = `effect-${i}`;
  const levels = features[i].total ?? features[i].levels.length;
  const unidentified = effects.unidentified.includes(effects.number.get(String(i)));
  const notes = unidentified ? [payload.words.unidentified] : [];
  const shownLevels = Math.min(features[i].levels.length, LEVELS.bars);
  if (!features[i].places && levels > shownLevels)
    notes.push(`The ${shownLevels} of ${levels.toLocaleString("en")} levels that carry most of the effect.`);
  notes.push(...(payload.notes[features[i].name] ?? []));
  sources.set(key, perOutput((output) => effectLines(i, output), payload.listed.effect));
  return figure({ key, title: nameOf(i), notes, description: `The effect of each level of ${nameOf(i)}.`, table: key, draw: (width) => drawEffect(i, width) });
}

// Pairs.

function pairGrid(s, output = choice.output) {
  const [i, j] = effects.subsets[s];
  const lines = records(s, output);
  const kept = [0, 1].map((side) => {
    const size = features[[i, j][side]].levels.length;
    const carried = new Array(size).fill(0);
    for (const { codes, share, value } of lines) carried[codes[side]] += share * Math.abs(value);
    const used = new Set(lines.map(({ codes }) => codes[side]));
    const order = [...carried.keys()].filter((c) => used.has(c)).sort((a, b) => carried[b] - carried[a]);
    return order.slice(0, LEVELS.grid).sort((a, b) => a - b);
  });
  const at = new Map(lines.map((line) => [line.codes.join(), line]));
  const cells = kept[0].flatMap((a, row) => kept[1].map((b, column) => {
    const line = at.get(`${a},${b}`);
    const names = [[nameOf(i), levelOf(i, a)], [nameOf(j), levelOf(j, b)]];
    return { value: null, share: 0, rows: null, stderr: null, ...line, codes: [a, b], row, column, names, observed: Boolean(line) };
  }));
  return { first: nameOf(i), second: nameOf(j), rows: kept[0].map((a) => levelOf(i, a)), columns: kept[1].map((b) => levelOf(j, b)), cells };
}

function pairFigure([i, j]) {
  const s = effects.number.get(`${i},${j}`);
  const key = `pair-${i}-${j}`;
  const title = `${nameOf(i)} × ${nameOf(j)}`;
  const named = [{ field: "first", title: features[i].name, kind: "text" }, { field: "second", title: features[j].name, kind: "text" }];
  const lines = (output) => pairGrid(s, output).cells.map((line) => ({ ...line, first: features[i].levels[line.codes[0]], second: features[j].levels[line.codes[1]] }));
  sources.set(key, perOutput(lines, [...named, ...payload.listed.pair]));
  const cutSides = [i, j].filter((k) => (features[k].total ?? features[k].levels.length) > LEVELS.grid);
  const notes = cutSides.map((k) => `The ${LEVELS.grid} levels of ${nameOf(k)} that carry most of it.`);
  if (effects.unidentified.includes(s)) notes.push(payload.words.unidentified);
  return figure({ key, title, notes, description: `Heat map: the interaction of ${nameOf(i)} and ${nameOf(j)}.`, table: key, draw: () => heatChart(pairGrid(s), boundOf(s)) });
}

// Three or more features: the combinations that carry most of the effect, as bars.

function higherLines(key, title, output = choice.output) {
  return source(key).lines(output).map((line) => {
    const rows = line.rows ?? null;
    const few = payload.few !== null && rows !== null && rows < payload.few;
    return { stderr: null, ...line, name: line.levels, feature: title, rows, few, mean: null, ordered: false, output: payload.outputs[output] };
  });
}

function higherFigure({ title, note }, k) {
  const key = `higher-${k}`;
  const draw = (width) => {
    const lines = higherLines(key, title);
    return effectChart(lines, width, around(lines.flatMap(interval), payload.rounding));
  };
  return figure({ key, title, notes: [note], description: `Bars: the interaction ${title} at the combinations that carry most of it.`, table: key, draw });
}

// The network of the strongest pairs.

function networkOf(output) {
  const network = payload.networks[Math.min(output, payload.networks.length - 1)];
  const linked = new Set(network.edges.flatMap(({ first, second }) => [first, second]));
  const of = network.output === null ? "all outputs added up" : network.output;
  return {
    nodes: network.nodes.filter(({ feature }) => linked.has(feature)).map((node) => ({ ...node, name: shownName.get(node.feature) })),
    edges: network.edges.map((edge) => ({ ...edge, output: of })),
  };
}

function networkFigure() {
  const listed = [{ field: "first", title: "feature", kind: "text" }, { field: "second", title: "with", kind: "text" }, { field: "value", title: "mean size of the interaction", kind: "value" }];
  sources.set("network", perOutput((output) => networkOf(output).edges, listed));
  const together = payload.networks[0].output === null && payload.outputs.length > 1 ? ["All outputs added up."] : [];
  return figure({
    key: "network",
    title: "Which features interact",
    notes: [...together, "The strongest pairs only: wide lines are strong interactions, large dots important features."],
    description: "Network: features as dots, the strength of each pair as the width of the line between them.",
    table: "network",
    draw: (width) => networkChart(networkOf(choice.output), width),
  });
}

// Cards in the order of importance for the output that is shown, as many as a reader asked for.

const made = new Map();
let wanted = MANY;

function card(key, build) {
  if (!made.has(key)) made.set(key, build());
  return made.get(key);
}

function arrangeEffects() {
  const place = document.getElementById("effect-cards");
  if (!place) return;
  const order = new Map(importanceLines().map(({ feature }, k) => [feature, k]));
  const sorted = [...payload.drawn].sort((a, b) => order.get(features[a].name) - order.get(features[b].name));
  const text = document.getElementById("find").value.toLowerCase();
  const matches = sorted.filter((i) => nameOf(i).toLowerCase().includes(text));
  const now = matches.slice(0, wanted);
  place.replaceChildren(...now.map((i) => card(`effect-${i}`, () => effectFigure(i))));
  document.getElementById("found").textContent = text ? `${matches.length} of ${sorted.length} features` : "";
  const more = document.getElementById("more-effects");
  more.hidden = matches.length <= now.length;
  more.textContent = `Show more (${(matches.length - now.length).toLocaleString("en")} left)`;
  const rest = document.getElementById("effects-rest");
  rest.textContent = matches.length > now.length ? `The ${now.length} most important of ${matches.length.toLocaleString("en")} features are shown.` : "";
}

function arrangePairs() {
  const place = document.getElementById("pair-cards");
  if (!place) return;
  const size = new Map(payload.pairs.map((pair) => [pair, strength(effects.number.get(pair.join()))]));
  const sorted = [...payload.pairs].sort((a, b) => size.get(b) - size.get(a));
  place.replaceChildren(...sorted.map((pair) => card(`pair-${pair.join("-")}`, () => pairFigure(pair))));
}

function arrange() {
  arrangeEffects();
  arrangePairs();
}
