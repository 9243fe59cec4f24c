// The data of the page: columns and effects are written once, in binary, and read here.

const payload = JSON.parse(document.getElementById("payload").textContent);
const choice = { output: 0, scale: "own", row: 0, levels: [] };

const KINDS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array, i1: Int8Array };

function numbers(packed) {
  if (!packed || Array.isArray(packed)) return packed;
  const [kind, text] = Object.entries(packed)[0];
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new KINDS[kind](bytes.buffer);
}

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

// Tables: one part for each output, or one for all; a part refers to columns.

function column(packed, length) {
  if (Array.isArray(packed)) return packed;
  if ("all" in packed) return new Array(length).fill(packed.all);
  return packed.texts ? packed.codes.map((k) => packed.texts[k]) : Array.from(numbers(packed));
}

function unpack({ length, fields }) {
  const columns = Object.entries(fields).map(([field, k]) => [field, column(payload.columns[k], length)]);
  return Array.from({ length }, (_, k) => Object.fromEntries(columns.map(([field, values]) => [field, values[k]])));
}

const ofOutput = (parts) => parts[Math.min(choice.output, parts.length - 1)];

// Names: what the data say, and how that is shown where it would be invisible.

const features = payload.features;
const nameOf = (i) => features[i].shown ?? features[i].name;
const levelOf = (i, c) => features[i].levels_shown?.[c] ?? features[i].levels[c];
const withValue = (name, level) => `${name}${/^(<|>=) /.test(level) ? "" : " ="} ${level}`; // age = 30, age < 18
const withLevel = (i, c) => withValue(nameOf(i), levelOf(i, c));

// Effects: for each subset of features, its cells; for each cell, its share of rows and one value for each output.

const effects = readEffects(payload.effects);

function readEffects(packed) {
  const fields = ["values", "stderr", "reach", "rows", "share", "means"].map((name) => [name, numbers(packed[name])]);
  const starts = [0];
  for (const cells of packed.cells) starts.push(starts[starts.length - 1] + cells);
  const keys = packed.keys.map(numbers);
  const continued = packed.continued.map(numbers);
  return { ...packed, ...Object.fromEntries(fields), starts, keys, continued, number: new Map(packed.subsets.map((s, k) => [s.join(), k])) };
}

// The levels of a cell, the last feature running fastest; cells that never occurred have no number.

function codesOf(s, cell) {
  let key = effects.keys[s] ? effects.keys[s][cell] : cell;
  return effects.subsets[s].map((i) => features[i].levels.length).reduceRight((codes, size) => {
    codes.unshift(key % size);
    key = Math.floor(key / size);
    return codes;
  }, []);
}

const keyAt = (s, codes) => effects.subsets[s].reduce((sum, i) => sum * features[i].levels.length + codes[i], 0);

// How many observed cells come before a number.

function cellsBefore(keys, key) {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

function cellAt(s, codes) {
  const [keys, key] = [effects.keys[s], keyAt(s, codes)];
  if (!keys) return key;
  const cell = cellsBefore(keys, key);
  return keys[cell] === key ? cell : -1;
}

// The value of an effect in a combination that never occurred: continued by the prior of the fit, or 0.

function continuedAt(s, codes, output = choice.output) {
  const values = effects.continued[s];
  if (!values) return 0;
  const key = keyAt(s, codes);
  return values[(key - cellsBefore(effects.keys[s], key)) * payload.outputs.length + output];
}

const place = (s, cell, output) => (effects.starts[s] + cell) * payload.outputs.length + output;
const valueAt = (s, cell, output = choice.output) => effects.values[place(s, cell, output)];

// One cell as a record: what pictures draw and tables list.

function record(s, cell, output = choice.output) {
  const at = place(s, cell, output);
  const [flat, first] = [effects.starts[s] + cell, effects.subsets[s].length === 1];
  const rows = effects.rows?.[flat];
  return {
    codes: codesOf(s, cell),
    output: payload.outputs[output],
    share: effects.share[flat],
    rows: known(rows) ? rows : null,
    few: payload.few !== null && known(rows) && rows < payload.few,
    value: effects.values[at],
    stderr: known(effects.stderr?.[at]) ? effects.stderr[at] : null,
    reach: effects.reach?.[flat] ?? REACH,
    mean: first && effects.means && known(effects.means[at]) ? effects.means[at] : null,
  };
}

function records(s, output = choice.output) {
  return Array.from({ length: effects.cells[s] }, (_, cell) => record(s, cell, output));
}

function strength(s, output = choice.output) {
  let sum = 0;
  for (let cell = 0; cell < effects.cells[s]; cell++)
    sum += effects.share[effects.starts[s] + cell] * Math.abs(valueAt(s, cell, output));
  return sum;
}
