// What if? A reader chooses levels; the page computes the fitted part there, its steps and its parts.

const ASKED = 20; // features whose levels can be chosen at once; others are added by name

const asked = []; // features in the form

function startWhatIf() {
  const form = document.getElementById("what-if-form");
  if (!form) return;
  choice.levels = startingLevels();
  const order = [...features.keys()].filter((i) => features[i].levels.length > 1);
  const rank = new Map(importanceLines().map(({ feature }, k) => [feature, k]));
  order.sort((a, b) => rank.get(features[a].name) - rank.get(features[b].name));
  asked.push(...order.slice(0, ASKED));
  fillForm();
  const more = document.getElementById("another");
  more.parentElement.hidden = order.length <= asked.length;
  document.getElementById("others").replaceChildren(...order.slice(ASKED).map((i) => optionOf(nameOf(i), nameOf(i))));
  more.addEventListener("change", () => addFeature(more));
  sources.set("what-if", perOutput((output) => fromLargest(linesAt(choice.levels, output)), payload.listed["what-if"]));
  sources.set("what-if-parts", perOutput(partLines, payload.listed["what-if-parts"]));
  watch(document.getElementById("what-if-steps"), (width) => waterfallChart(stepsOf(linesAt(choice.levels)), width));
  describeChoice();
}

function startingLevels() {
  if (rows.codesAt && rows.numbers.length) return rows.codesAt(choice.row).map((c) => Math.max(0, c));
  return features.map((_, i) => mostFrequent(i));
}

function mostFrequent(i) {
  const s = effects.number.get(String(i));
  if (s === undefined) return 0;
  const shares = effects.share.subarray(effects.starts[s], effects.starts[s + 1]);
  return shares.indexOf(Math.max(...shares));
}

function optionOf(value, text) {
  const option = make("option", text);
  option.value = value;
  return option;
}

function fillForm() {
  document.getElementById("what-if-form").replaceChildren(...asked.map((i) => {
    const select = make("select");
    select.id = `level-${i}`;
    select.replaceChildren(...features[i].levels.map((_, c) => optionOf(c, levelOf(i, c))));
    select.value = choice.levels[i];
    select.addEventListener("change", () => chooseLevel(i, Number(select.value)));
    const name = make("label", nameOf(i));
    name.htmlFor = select.id;
    return wrapped("div", [name, select]);
  }));
}

function addFeature(input) {
  const i = features.findIndex((_, k) => nameOf(k) === input.value);
  if (i < 0) return;
  input.value = "";
  if (!asked.includes(i)) asked.unshift(i);
  fillForm();
  describeChoice();
  document.getElementById(`level-${i}`).focus();
}

function chooseLevel(i, c) {
  choice.levels[i] = c;
  changedLevels();
}

function changedLevels() {
  redraw(({ id }) => id === "what-if-steps");
  refill((key) => key.startsWith("what-if"));
  describeChoice();
  rememberState();
}

function resetWhatIf() {
  choice.levels = startingLevels();
  fillForm();
  changedLevels();
}

// The note about the chosen levels: the value there, and which combinations never occurred.

function describeChoice() {
  if (!document.getElementById("what-if-form")) return;
  const parts = partsAt(choice.levels);
  const fitted = parts.reduce((sum, { value }) => sum + value, 0);
  const error = totalStderrAt(choice.levels, parts);
  const reach = error === null ? "" : ` (95 % interval ${intervalText(fitted - REACH * error, fitted + REACH * error)})`;
  const value = document.getElementById("what-if-value");
  const own = back ? `; ${responseName()}: ${plain(back(fitted), 4)}${error === null ? "" : ` (${intervalText(back(fitted - REACH * error), back(fitted + REACH * error))})`}` : "";
  value.textContent = `${outputName()}: ${amount(fitted, 4)}${reach}${own}`;
  value.dataset.value = String(fitted);
  const never = neverSeen(parts);
  const named = never.slice(0, 6).map(({ subset }) => subset.map((i) => withLevel(i, choice.levels[i])).join(" with "));
  const more = never.length > named.length ? ` and ${never.length - named.length} more` : "";
  const note = document.getElementById("what-if-note");
  note.hidden = !never.length;
  note.textContent = never.length ? `Never observed: ${named.join("; ")}${more}. The effect of such a combination ${effects.unseen}.` : "";
  for (const i of asked) markOptions(i);
}

const intervalText = (low, high) => `${amount(low, 4)} to ${amount(high, 4)}`;

function markOptions(i) {
  const select = document.getElementById(`level-${i}`);
  for (const option of select.options) {
    const codes = [...choice.levels];
    codes[i] = Number(option.value);
    const isNew = withFeature[i].some((s) => cellAt(s, codes) < 0);
    option.textContent = `${levelOf(i, codes[i])}${isNew ? " (never observed with the other levels)" : ""}`;
  }
}

function partLines(output) {
  const lines = partsAt(choice.levels, output).filter(({ subset }) => subset.length);
  return lines
    .map(({ s, subset, cell, value }) => ({
      ...(cell < 0 ? { share: 0, rows: null, stderr: null } : record(s, cell, output)),
      subset: subset.map(nameOf).join(" × "),
      levels: subset.map((i) => levelOf(i, choice.levels[i])).join(", "),
      observed: cell >= 0,
      value,
    }))
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}
