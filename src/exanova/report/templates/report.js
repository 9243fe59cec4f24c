// What happens when: choices of the reader, printing, and the first drawing of the page.

function chooseOutput(k) {
  choice.output = k;
  arrange();
  redraw();
  refill();
  nameRows();
  describeChoice();
  describeCohort();
  rememberState();
  for (const which of document.querySelectorAll(".which")) nameOutput(which);
}

function chooseScale(kind) {
  choice.scale = kind;
  redraw(({ id }) => id.startsWith("effect-") || id.startsWith("pair-"));
  rememberState();
}

// Links that open a state: #row=17&output=2, with scale= and levels= besides. A row goes by its id or its number.

let isReading = true; // until the page is complete, and while a link is followed

function rememberState() {
  if (isReading) return;
  const state = new URLSearchParams();
  if (outputs > 1) state.set("output", choice.output);
  if (picker) state.set("row", rows.ids?.[choice.row] ?? rows.numbers[choice.row]);
  if (choice.scale !== "own") state.set("scale", choice.scale);
  if (document.getElementById("what-if-form")) state.set("levels", choice.levels.join("."));
  if (document.getElementById("cohort-feature")) state.set("group", [cohort.feature, cohort.level, cohort.against].join("."));
  history.replaceState(null, "", `#${state}`);
}

function readState() {
  if (!location.hash.includes("=")) return;
  const state = new URLSearchParams(location.hash.slice(1));
  isReading = true;
  if (state.has("output")) followOutput(state.get("output"));
  if (state.has("scale")) followScale(state.get("scale"));
  if (state.has("row")) followRow(state.get("row"));
  if (state.has("levels")) followLevels(state.get("levels").split(".").map(Number));
  if (state.has("group")) followGroup(state.get("group").split(".").map(Number));
  isReading = false;
  const section = state.has("row") && !state.has("levels") ? "rows" : state.get("section");
  if (section) keepInView(document.getElementById(section));
}

// Charts above a section are drawn when it comes near, and would push it away.

function keepInView(section, frames = 30) {
  if (!section) return;
  section.scrollIntoView();
  if (frames) requestAnimationFrame(() => keepInView(section, frames - 1));
}

function followOutput(text) {
  const named = payload.outputs.indexOf(text);
  const k = named >= 0 ? named : Number(text);
  const select = document.getElementById("output");
  if (!select || !(k in payload.outputs)) return;
  select.value = k;
  chooseOutput(k);
}

function followScale(kind) {
  const select = document.getElementById("scale");
  if (!select || !Array.from(select.options, ({ value }) => value).includes(kind)) return;
  select.value = kind;
  chooseScale(kind);
}

function followRow(text) {
  if (!picker) return;
  const k = rows.ids?.includes(text) ? rows.ids.indexOf(text) : rows.numbers.indexOf(Number(text));
  if (k < 0) return;
  if (!Array.from(picker.options, ({ value }) => value).includes(String(k))) {
    document.getElementById("filter").value = text;
    keepRows(text);
  }
  picker.value = k;
  chooseRow();
}

function followGroup([feature, level, against]) {
  const isLevel = (c) => Number.isInteger(c) && c >= 0 && c < features[feature]?.levels.length;
  if (document.getElementById("cohort-feature") && isLevel(level) && (against === -1 || isLevel(against))) chooseCohort(feature, level, against);
}

function followLevels(codes) {
  if (!document.getElementById("what-if-form") || codes.length !== features.length) return;
  if (!codes.every((c, i) => Number.isInteger(c) && c >= 0 && c < features[i].levels.length)) return;
  choice.levels = codes;
  fillForm();
  changedLevels();
}

on("output", "change", ({ target }) => chooseOutput(Number(target.value)));
on("scale", "change", ({ target }) => chooseScale(target.value));
on("row", "change", chooseRow);
on("previous", "click", () => stepRow(-1));
on("next", "click", () => stepRow(1));
on("filter", "input", ({ target }) => keepRows(target.value));
on("start-here", "click", resetWhatIf);
on("find", "input", arrangeEffects);
on("more-effects", "click", () => {
  wanted += 4 * MANY;
  arrangeEffects();
});

// The glossary: a word says what it means when it is pointed at, or reached with the keyboard.

function startGlossary() {
  for (const term of document.querySelectorAll(".term")) {
    tipLines.set(term, [["", document.getElementById(term.getAttribute("aria-describedby")).textContent]]);
    term.addEventListener("focus", () => {
      const { left, bottom } = term.getBoundingClientRect();
      showTip(tipLines.get(term), left, bottom - 8);
    });
    term.addEventListener("blur", () => (tip.hidden = true));
  }
  document.addEventListener("keydown", ({ key }) => key === "Escape" && (tip.hidden = true));
}

// Paper: everything is drawn before the page is laid out for it, in the same turn, and again for the screen afterwards.

function turnTo(paper) {
  if (onPaper === paper) return;
  onPaper = paper;
  document.documentElement.toggleAttribute("data-paper", paper);
  for (const holder of pictures.keys()) if (holder.isConnected && (paper || holder.dataset.drawn)) draw(holder);
  if (paper) for (const details of document.querySelectorAll("details[data-table][data-print]")) fill(details);
}

window.addEventListener("beforeprint", () => turnTo(true));
window.addEventListener("afterprint", () => turnTo(false));
matchMedia("print").addEventListener("change", ({ matches }) => turnTo(matches));

let width = window.innerWidth;
let waiting = 0;
window.addEventListener("resize", () => {
  if (window.innerWidth === width || onPaper) return;
  width = window.innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(() => redraw(), 150);
});

// The first drawing.

document.getElementById("importance-figure").append(importanceFigure());
document.getElementById("higher-figures")?.append(...payload.higher.map(higherFigure));
if (payload.networks.length) document.getElementById("network-figure").append(networkFigure());
arrange();
for (const details of document.querySelectorAll("details[data-table]")) if (!details.closest("figure[data-name]")) watchTable(details);
startRows();
startWhatIf();
startCohorts();
startGlossary();
refill();
readState();
isReading = false;
window.addEventListener("hashchange", readState);
for (const which of document.querySelectorAll(".which")) nameOutput(which);
