// The effects at any levels: the fitted part, its parts, Shapley values and their standard errors.

const outputs = payload.outputs.length;

// One part for each subset of features: the mean first. A combination that never occurred has no cell; a level that is
// not known adds nothing.

function partsAt(codes, output = choice.output) {
  return effects.subsets.map((subset, s) => {
    if (subset.some((i) => codes[i] < 0)) return { s, subset, cell: -1, value: 0 };
    const cell = cellAt(s, codes);
    return { s, subset, cell, value: cell < 0 ? continuedAt(s, codes, output) : valueAt(s, cell, output) };
  });
}

function fittedAt(codes, output = choice.output) {
  let sum = 0;
  for (let s = 0; s < effects.subsets.length; s++) {
    if (effects.subsets[s].some((i) => codes[i] < 0)) continue;
    const cell = cellAt(s, codes);
    sum += cell < 0 ? continuedAt(s, codes, output) : valueAt(s, cell, output);
  }
  return sum;
}

function shapleyAt(parts) {
  const values = new Float64Array(features.length);
  for (const { subset, value } of parts) for (const i of subset) values[i] += value / subset.length;
  return values;
}

const neverSeen = (parts) => parts.filter(({ cell }) => cell < 0);
const isExtrapolated = ({ s, cell }) => cell < 0 && Boolean(effects.continued[s]);

// Standard errors: a Shapley value is a weighted sum of cells, whose covariances are in the block of the feature's level
// (or in the one block of all cells).

const covariances = payload.errors && readCovariances(payload.errors);
const withFeature = features.map((_, i) => effects.subsets.map((subset, s) => [subset, s]).filter(([subset]) => subset.includes(i)).map(([, s]) => s));
const diagonal = covariances?.correlations ? -1 : 1;
const blocks = covariances && !covariances.factor && findBlocks();
const atRows = payload.at_rows && readAtRows(payload.at_rows);

function readCovariances({ factor, whole, ...arrays }) {
  const read = (packed) => Object.fromEntries(Object.entries(packed).map(([name, part]) => [name, numbers(part)]));
  return { ...read(arrays), whole, factor: factor?.map(read) };
}

// Errors made with the page, by the levels of a row.

function readAtRows({ rows: listed, largest, steps }) {
  const codes = numbers(payload.rows.codes);
  const d = features.length;
  const of = (k) => codes.subarray(k * d, (k + 1) * d).join();
  return { place: new Map(Array.from(numbers(listed), (k, row) => [of(k), row])), largest, steps: numbers(steps) };
}

function keptAt(codes, statistic, output) {
  const row = atRows?.place.get(codes.join());
  if (row === undefined) return undefined;
  const step = atRows.steps[(row * (features.length + 1) + statistic) * outputs + output];
  return step === 65535 ? null : (step / 65534) * atRows.largest;
}

function findBlocks() {
  const blocks = new Map();
  let start = 0;
  const add = (key, cells) => {
    blocks.set(key, { start, size: cells.length, at: new Map(cells.map((cell, k) => [cell, k])) });
    start += (cells.length * (cells.length + diagonal)) / 2;
  };
  if (covariances.whole) add("", Array.from({ length: effects.starts[effects.starts.length - 1] }, (_, k) => k));
  else features.forEach(({ levels }, i) => {
    const cells = levels.map(() => []);
    for (const s of withFeature[i]) {
      const at = effects.subsets[s].indexOf(i);
      for (let cell = 0; cell < effects.cells[s]; cell++) cells[codesOf(s, cell)[at]].push(effects.starts[s] + cell);
    }
    levels.forEach((_, z) => add(`${i},${z}`, cells[z]));
  });
  return blocks;
}

// The variance of a sum of cells.

function varianceOf(block, weights, output) {
  if (covariances.factor) return factoredVariance(weights, covariances.factor[output]);
  const coarse = covariances.correlations;
  const terms = weights.map(([cell, w]) => [block.at.get(cell), coarse ? w * effects.stderr[cell * outputs + output] : w]);
  let sum = 0;
  for (const [a, u] of terms)
    for (const [b, v] of terms) {
      const [low, high] = a < b ? [a, b] : [b, a];
      const place = block.start + low * block.size - (low * (low - diagonal)) / 2 + (high - low) - (coarse ? 1 : 0);
      const entry = !coarse ? covariances.triangles[place * outputs + output] : a === b ? 1 : coarse[place * outputs + output] / 127;
      sum += u * v * entry;
    }
  return Math.max(0, sum);
}

function factoredVariance(weights, { entries, scale, unit, own }) {
  const sums = new Float64Array(unit.length);
  let variance = 0;
  for (const [cell, weight] of weights) {
    variance += weight ** 2 * own[cell];
    sums.forEach((_, k) => (sums[k] += weight * scale[cell] * entries[cell * sums.length + k]));
  }
  sums.forEach((sum, k) => (variance += (sum * unit[k]) ** 2));
  return Math.max(0, variance);
}

function stderrAt(codes, parts, output = choice.output) {
  if (keptAt(codes, 0, output) !== undefined) return features.map((_, i) => keptAt(codes, i, output));
  if (!covariances) return null;
  const cell = new Map(parts.filter((part) => part.cell >= 0).map((part) => [part.s, effects.starts[part.s] + part.cell]));
  return features.map((_, i) => {
    if (codes[i] < 0) return 0;
    if (withFeature[i].some((s) => effects.unidentified.includes(s) || isExtrapolated(parts[s]))) return null;
    const block = blocks && blocks.get(covariances.whole ? "" : `${i},${codes[i]}`);
    const weights = withFeature[i].filter((s) => cell.has(s)).map((s) => [cell.get(s), 1 / effects.subsets[s].length]);
    return Math.sqrt(varianceOf(block, weights, output));
  });
}

function totalStderrAt(codes, parts, output = choice.output) {
  const kept = keptAt(codes, features.length, output);
  if (kept !== undefined) return kept;
  if (!covariances?.whole || effects.unidentified.length || parts.some(isExtrapolated)) return null;
  const weights = parts.filter(({ cell }) => cell >= 0).map(({ s, cell }) => [effects.starts[s] + cell, 1]);
  return Math.sqrt(varianceOf(blocks && blocks.get(""), weights, output));
}

// The lines of a table and the steps of a waterfall: the mean, each feature, the residual if it is known, the total.

function linesAt(codes, output = choice.output, residual = null) {
  const parts = partsAt(codes, output);
  const [values, errors] = [shapleyAt(parts), stderrAt(codes, parts, output)];
  const fitted = parts.reduce((sum, { value }) => sum + value, 0);
  const line = (kind, feature, value, more = {}) => ({ kind, feature, level: null, value, stderr: null, ...more });
  return [
    line("base", "mean", valueAt(0, 0, output)),
    ...features.map(({ name, levels }, i) => line("feature", name, values[i], { level: codes[i] < 0 ? "(unknown)" : levels[codes[i]], shown: codes[i] < 0 ? "(unknown)" : levelOf(i, codes[i]), stderr: errors ? errors[i] : null })),
    ...(residual === null ? [] : [line("residual", "residual", residual)]),
    line("total", residual === null ? "fitted part" : "model", fitted + (residual ?? 0), { stderr: residual === null ? totalStderrAt(codes, parts, output) : null }),
  ];
}
