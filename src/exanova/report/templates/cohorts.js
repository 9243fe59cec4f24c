// Groups of rows: those with a level, against all others or those with another level, and what makes the difference.

const cohort = { feature: 0, level: 0, against: -1 }; // against: a level, or -1 for all other rows
const CELLS_KEPT = 4e6; // cells of rows that are looked up only once

const cellsOfRows = keepCells();

function keepCells() {
  const count = rows.numbers.length * effects.subsets.length;
  if (!rows.codesAt || count > CELLS_KEPT) return null;
  const kept = new Map();
  return (k) => {
    if (!kept.has(k)) kept.set(k, Int32Array.from(partsAt(rows.codesAt(k), 0), ({ cell }) => cell));
    return kept.get(k);
  };
}

const cellsAt = (k) => (cellsOfRows ? cellsOfRows(k) : Int32Array.from(partsAt(rows.codesAt(k), 0), ({ cell }) => cell));

// Means over a group: of every part, and of the residual where it is known.

function meansOver(isIn, output) {
  const sums = new Float64Array(effects.subsets.length);
  let [count, weight, residual] = [0, 0, 0];
  rows.numbers.forEach((_, k) => {
    if (!isIn(rows.codesAt(k))) return;
    const copies = rows.weight ? rows.weight[k] : 1;
    const w = rows.mass ? rows.mass[k] : copies;
    const cells = cellsAt(k);
    for (let s = 0; s < sums.length; s++) if (cells[s] >= 0) sums[s] += w * valueAt(s, cells[s], output);
    residual += w * (rows.residualAt(k, output) ?? 0);
    [count, weight] = [count + copies, weight + w];
  });
  return { count, parts: sums.map((sum) => sum / weight), residual: rows.residualAt(0, output) === null ? null : residual / weight };
}

// Standard errors come with the page.

const setErrors = numbers(payload.cohorts.stderr);
const setNumber = new Map(payload.cohorts.sets.map((set, k) => [set.join(), k]));

function errorsOf(output) {
  const { feature, level, against } = cohort;
  const levels = features[feature].levels.length;
  const names = against < 0 || levels === 2 ? [[level, -1]] : [[level, against], [against, level]];
  const k = names.map((ends) => setNumber.get([feature, ...ends].join())).find((number) => number !== undefined);
  if (k === undefined) return null;
  const at = (i) => setErrors[(k * (features.length + 2) + i) * outputs + output];
  return Array.from({ length: features.length + 2 }, (_, i) => (known(at(i)) ? at(i) : null));
}

function compared(output = choice.output) {
  const { feature, level, against } = cohort;
  const first = meansOver((codes) => codes[feature] === level, output);
  const second = meansOver((codes) => (against < 0 ? codes[feature] !== level : codes[feature] === against), output);
  const mean = ({ parts, residual }) => parts.reduce((sum, part) => sum + part, 0) + (residual ?? 0);
  const byFeature = new Float64Array(features.length);
  effects.subsets.forEach((subset, s) => subset.forEach((i) => (byFeature[i] += (first.parts[s] - second.parts[s]) / subset.length)));
  return { first, second, means: [mean(first), mean(second)], byFeature };
}

function cohortLines(output = choice.output) {
  const { first, second, means, byFeature } = compared(output);
  const errors = errorsOf(output);
  const line = (kind, part, value, stderr = null) => ({ kind, part, name: part, feature: part, value, stderr });
  const residual = first.residual === null ? [] : [line("residual", "residual", first.residual - second.residual, errors?.at(-2) ?? null)];
  return [
    line("base", nameOfGroup(cohort.against), means[1]),
    ...features.map((_, i) => line("feature", nameOf(i), byFeature[i], errors?.[i] ?? null)),
    ...residual,
    line("total", nameOfGroup(cohort.level), means[0]),
  ];
}

function cohortParts(output = choice.output) {
  const { first, second } = compared(output);
  const lines = effects.subsets.map((subset, s) => ({ part: subset.map(nameOf).join(" × "), value: first.parts[s] - second.parts[s] }));
  return lines.slice(1).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}

const nameOfGroup = (level) => (level < 0 ? "all other rows" : withLevel(cohort.feature, level));

function describeCohort() {
  if (!document.getElementById("cohort-feature")) return;
  const { first, second, means } = compared();
  const of = ({ count }) => `${counted(count)} row${count === 1 ? "" : "s"}`;
  const title = document.getElementById("cohort-title");
  const none = !first.count || !second.count;
  title.textContent = none
    ? "No rows to compare"
    : `${nameOfGroup(cohort.level)}: mean ${plain(means[0], 4)} (${of(first)}); ${nameOfGroup(cohort.against)}: mean ${plain(means[1], 4)} (${of(second)}); difference ${signed(means[0] - means[1], 4)}${withError(errorsOf(choice.output))}`;
  title.dataset.means = means.join(" ");
}

const withError = (errors) => (known(errors?.at(-1)) ? ` ± ${plain(errors.at(-1), 2)}` : "");

function changedCohort() {
  redraw(({ id }) => id === "cohort-steps");
  refill((key) => key.startsWith("cohort"));
  describeCohort();
  rememberState();
}

function fillLevels() {
  const levels = features[cohort.feature].levels.map((_, c) => optionOf(c, levelOf(cohort.feature, c)));
  document.getElementById("cohort-level").replaceChildren(...levels);
  document.getElementById("cohort-level").value = cohort.level;
  const others = [optionOf(-1, "all other rows"), ...levels.map((option) => option.cloneNode(true))];
  document.getElementById("cohort-against").replaceChildren(...others);
  document.getElementById("cohort-against").value = cohort.against;
}

function chooseCohort(feature, level, against) {
  Object.assign(cohort, { feature, level, against });
  document.getElementById("cohort-feature").value = feature;
  fillLevels();
  changedCohort();
}

function startCohorts() {
  const select = document.getElementById("cohort-feature");
  if (!select) return;
  const varying = [...features.keys()].filter((i) => features[i].levels.length > 1);
  if (!varying.length) return;
  const rank = new Map(importanceLines().map(({ feature }, k) => [feature, k]));
  varying.sort((a, b) => rank.get(features[a].name) - rank.get(features[b].name));
  select.replaceChildren(...varying.map((i) => optionOf(i, nameOf(i))));
  cohort.feature = varying[0];
  fillLevels();
  select.addEventListener("change", () => chooseCohort(Number(select.value), 0, -1));
  for (const [id, field] of [["cohort-level", "level"], ["cohort-against", "against"]])
    on(id, "change", ({ target }) => {
      cohort[field] = Number(target.value);
      changedCohort();
    });
  sources.set("cohort", perOutput((output) => fromLargest(cohortLines(output)), payload.listed.cohort));
  sources.set("cohort-parts", perOutput(cohortParts, payload.listed["cohort-parts"]));
  watch(document.getElementById("cohort-steps"), (width) => waterfallChart(stepsOf(cohortLines()), width));
  describeCohort();
}
