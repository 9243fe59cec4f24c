// The row explorer.

const picker = document.getElementById("row");
const STEPS = 10; // features with a step of their own in a waterfall

function rowTable(k, output = choice.output) {
  return unpack(payload.rows[k].table[output]);
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
  const kept = [...sorted.filter((line) => line.kind !== "rest" && !rest.includes(line))];
  const ends = kept.findIndex(({ kind }) => kind === "residual" || kind === "total");
  let here = 0;
  return [...kept.slice(0, ends), ...pooled, ...kept.slice(ends)].map((line) => {
    const isStop = line.kind === "base" || line.kind === "total";
    const start = isStop ? line.value : here;
    here = isStop ? line.value : here + line.value;
    const name = line.name ?? (line.kind === "feature" ? `${shownName.get(line.feature)} = ${line.shown ?? line.level}` : line.feature);
    return { ...line, name, start, end: here, output: outputName() };
  });
}

const total = (lines) => lines[lines.length - 1].value;
const nameOfRow = (k) => `Row ${payload.rows[k].row}: ${shown(total(rowTable(k)), "value")}`;

function describeRow() {
  if (!picker) return;
  for (const option of picker.options) option.textContent = nameOfRow(option.value);
  document.getElementById("row-title").textContent = nameOfRow(choice.row);
  document.getElementById("row-note").textContent = payload.rows[choice.row].outside
    ? "This row holds a combination of levels that never occurred; the effects of that combination count as 0."
    : "";
  document.getElementById("previous").disabled = picker.selectedIndex <= 0;
  document.getElementById("next").disabled = picker.selectedIndex >= picker.options.length - 1;
}

function chooseRow() {
  choice.row = Number(picker.value);
  redraw(({ id }) => id === "waterfall");
  refill((key) => key === "row");
  describeRow();
}

function stepRow(by) {
  picker.selectedIndex = Math.max(0, Math.min(picker.options.length - 1, picker.selectedIndex + by));
  chooseRow();
}

function keepRows(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const said = (k) => `row=${payload.rows[k].row} ${rowTable(k, 0).map(({ feature, level }) => `${feature}=${level}`).join(" ")}`.toLowerCase();
  const kept = [...payload.rows.keys()].filter((k) => words.every((word) => said(k).includes(word)));
  document.getElementById("kept").textContent = `${kept.length} of ${payload.rows.length} rows`;
  if (!kept.length) return;
  picker.replaceChildren(
    ...kept.map((k) => {
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
  const lines = (output) => fromLargest(rowTable(choice.row, output));
  const all = () => [...payload.rows.keys()].flatMap((k) => payload.outputs.flatMap((output, o) => rowTable(k, o).map((line) => ({ row: payload.rows[k].row, output, ...line }))));
  sources.set("row", { lines, all, listed: payload.listed.row });
  watch(document.getElementById("waterfall"), (width) => waterfallChart(stepsOf(rowTable(choice.row)), width));
  keepRows("");
}
