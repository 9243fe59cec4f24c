// What happens when: choices of the reader, printing, and the first drawing of the page.

const on = (id, event, act) => document.getElementById(id)?.addEventListener(event, act);

function chooseOutput(k) {
  choice.output = k;
  arrange();
  redraw();
  refill();
  describeRow();
  for (const which of document.querySelectorAll(".which")) nameOutput(which);
}

function chooseScale(kind) {
  choice.scale = kind;
  redraw(({ id }) => id.startsWith("effect-") || id.startsWith("pair-"));
}

on("output", "change", ({ target }) => chooseOutput(Number(target.value)));
on("scale", "change", ({ target }) => chooseScale(target.value));
on("row", "change", chooseRow);
on("previous", "click", () => stepRow(-1));
on("next", "click", () => stepRow(1));
on("filter", "input", ({ target }) => keepRows(target.value));
on("find", "input", arrangeEffects);
on("more-effects", "click", () => {
  wanted += 4 * MANY;
  arrangeEffects();
});

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
if (payload.networks.length) document.getElementById("network-figure").append(networkFigure());
arrange();
for (const details of document.querySelectorAll("details[data-table]")) if (!details.closest("figure[data-name]")) watchTable(details);
startRows();
refill();
for (const which of document.querySelectorAll(".which")) nameOutput(which);
