// The row explorer. Where the page holds all effects it explains any of its rows; else only those in "shown".

const picker = document.getElementById("row");
const STEPS = 10; // features with a step of their own in a waterfall
const LISTED = 500; // rows in the list to choose from

const rows = readRows();

function readRows() {
  if (payload.rows) {
    const [codes, residual, d] = [numbers(payload.rows.codes), numbers(payload.rows.residual), features.length];
    const codesAt = (k) => Array.from(codes.subarray(k * d, (k + 1) * d));
    const cells = Object.entries(payload.rows.cells).map(([i, { texts, codes: own }]) => [features[i].name, { texts, own: numbers(own) }]);
    const held = new Map(cells);
    const cellOf = (feature, k) => held.get(feature)?.texts[held.get(feature).own[k]] ?? "";
    // What a row holds, and the interval or the joined level it falls in.
    const withCell = (line, k) => {
      const cell = line.kind === "feature" ? cellOf(line.feature, k) : "";
      const within = (level) => (/^(<|>=|before|from) /.test(level) ? level : `in ${level}`);
      const inside = (level) => (cell && cell !== level ? `${cell} (${within(level)})` : level);
      return line.kind === "feature" ? { ...line, level: inside(line.level), shown: inside(line.shown) } : line;
    };
    return {
      numbers: Array.from(numbers(payload.rows.numbers)),
      ids: payload.rows.ids,
      weight: numbers(payload.rows.weight),
      mass: numbers(payload.rows.mass),
      codesAt,
      residualAt: (k, output) => (residual ? residual[k * outputs + output] : null),
      lines: (k, output) => linesAt(codesAt(k), output, residual ? residual[k * outputs + output] : null).map((line) => withCell(line, k)),
      total: (k, output) => fittedAt(codesAt(k), output) + (residual ? residual[k * outputs + output] : 0),
      outside: (k) => neverSeen(partsAt(codesAt(k))).length > 0,
    };
  }
  const lines = (k, output) => unpack(payload.shown[k].table[output]);
  return {
    numbers: payload.shown.map(({ row }) => row),
    ids: payload.shown.length && payload.shown[0].id !== null ? payload.shown.map(({ id }) => id) : null,
    lines,
    total: (k, output) => lines(k, output).at(-1).value,
    outside: (k) => payload.shown[k].outside,
  };
}

const ORDER = ["base", "feature", "rest", "residual", "total"];

function fromLargest(lines) {
  const rank = ({ kind, value }) => [ORDER.indexOf(kind), -Math.abs(value)];
  const compare = ([a, b], [c, d]) => a - c || b - d;
  return lines.map((line) => [rank(line), line]).sort(([a], [b]) => compare(a, b)).map(([, line]) => line);
}

// The steps of a waterfall from the lines of a table: the largest features one by one, the others added up.

function stepsOf(lines, most = STEPS) {
  const sorted = fromLargest(lines);
  const single = sorted.filter(({ kind }) => kind === "feature");
  const rest = single.length > most + 1 ? single.slice(most) : [];
  const others = sorted.filter(({ kind }) => kind === "rest");
  const left = [...rest, ...others];
  const count = rest.length + (others.length ? Number(others[0].feature.replace(/\D/g, "")) : 0);
  const sum = left.reduce((total, { value }) => total + value, 0);
  const pooled = left.length ? [{ kind: "rest", name: `${count.toLocaleString("en")} other features`, value: sum, stderr: null }] : [];
  const kept = sorted.filter((line) => line.kind !== "rest" && !rest.includes(line));
  const ends = kept.findIndex(({ kind }) => kind === "residual" || kind === "total");
  let here = 0;
  return [...kept.slice(0, ends), ...pooled, ...kept.slice(ends)].map((line) => {
    const isStop = line.kind === "base" || line.kind === "total";
    const start = isStop ? line.value : here;
    here = isStop ? line.value : here + line.value;
    const name = line.name ?? (line.kind === "feature" ? withValue(shownName.get(line.feature), line.shown ?? line.level) : line.feature);
    return { ...line, name, start, end: here, output: outputName() };
  });
}

const totals = payload.outputs.map(() => []); // of rows, by output, computed once

const totalOf = (k, output) => (totals[output][k] ??= rows.total(k, output));
const calledRow = (k) => (rows.ids ? `Row ${rows.ids[k]}` : `Row ${rows.numbers[k]}`);
const nameOfRow = (k) => `${calledRow(k)}: ${shown(totalOf(k, choice.output), "value")}${responseOf(k)}`;
const responseOf = (k) => (back ? ` (${responseName()} ${plain(back(totalOf(k, choice.output)), 4)})` : "");

function nameRows() {
  if (!picker) return;
  for (const option of picker.options) option.textContent = nameOfRow(option.value);
  describeRow();
}

function describeRow() {
  document.getElementById("row-title").textContent = nameOfRow(choice.row);
  document.getElementById("row-note").textContent = rows.outside(choice.row)
    ? `This row holds a combination of levels that never occurred; its effect ${effects.unseen}.`
    : "";
  document.getElementById("previous").disabled = picker.selectedIndex <= 0;
  document.getElementById("next").disabled = picker.selectedIndex >= picker.options.length - 1;
}

function chooseRow() {
  choice.row = Number(picker.value);
  redraw(({ id }) => id === "waterfall");
  refill((key) => key === "row");
  describeRow();
  rememberState();
}

function stepRow(by) {
  picker.selectedIndex = Math.max(0, Math.min(picker.options.length - 1, picker.selectedIndex + by));
  chooseRow();
}

// Rows are found by their id or number, or by what they contain.

function searchTextOf(k) {
  const levels = rows.lines(k, 0).map(({ feature, level }) => `${feature}=${level}`);
  return [`row=${rows.numbers[k]}`, rows.ids ? `id=${rows.ids[k]}` : "", ...levels].join(" ").toLowerCase();
}

const searchTexts = [];

function matching(text) {
  const wanted = text.trim().toLowerCase();
  const all = rows.numbers.map((_, k) => k);
  if (!wanted) return all;
  const exact = all.filter((k) => (rows.ids ? rows.ids[k].toLowerCase() === wanted : String(rows.numbers[k]) === wanted));
  if (exact.length) return exact;
  const words = wanted.split(/\s+/);
  return all.filter((k) => words.every((word) => (searchTexts[k] ??= searchTextOf(k)).includes(word)));
}

function keepRows(text) {
  const kept = matching(text);
  const listed = kept.slice(0, LISTED);
  const more = kept.length > listed.length ? `, the first ${LISTED} in the list` : "";
  document.getElementById("kept").textContent = `${kept.length.toLocaleString("en")} of ${rows.numbers.length.toLocaleString("en")} rows${more}`;
  if (!kept.length) return;
  picker.replaceChildren(
    ...listed.map((k) => {
      const option = make("option", nameOfRow(k));
      option.value = k;
      option.selected = k === choice.row;
      return option;
    })
  );
  chooseRow();
}

function startRows() {
  if (!picker) return;
  const lines = (output) => fromLargest(rows.lines(choice.row, output));
  const named = (k) => ({ row: rows.numbers[k], id: rows.ids?.[k] });
  const all = () => rows.numbers.flatMap((_, k) => payload.outputs.flatMap((output, o) => rows.lines(k, o).map((line) => ({ ...named(k), output, ...line }))));
  sources.set("row", { lines, all, listed: payload.listed.row.filter(({ field }) => field !== "id" || rows.ids) });
  watch(document.getElementById("waterfall"), (width) => waterfallChart(stepsOf(rows.lines(choice.row, choice.output)), width));
  keepRows("");
}
