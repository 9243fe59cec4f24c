"use strict";
(() => {
  const payload = JSON.parse(document.getElementById("payload").textContent);
  const choice = { output: 0, row: payload.rows[0] };
  const NEAR = "600px"; // how far from the window a picture is drawn
  const NARROW = 480; // pixels of a picture on a phone, or of two side by side on paper
  const PRINTED = 36; // pixels of a number beside a bar

  // Elements: text from the data enters the page as text, never as markup.

  function make(tag, text, className) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  }

  function shown(value, kind) {
    if (value === null || value === undefined) return "";
    if (kind === "percent") return `${plain(100 * value, 3)} %`;
    if (kind === "error") return plain(value, 2);
    if (kind === "value" && Math.abs(value) <= payload.rounding) return "0";
    return typeof value === "number" ? plain(value, 4) : String(value) || "(empty)";
  }

  function plain(value, digits) {
    if (value === 0 || !Number.isFinite(value)) return String(value);
    const size = Math.abs(value);
    return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 1);
  }

  // Tables: one part for each output, or one for all; a part refers to columns, whose texts are written once.

  function unpack({ length, fields }) {
    const columns = Object.entries(fields).map(([field, k]) => [field, column(payload.columns[k], length)]);
    return Array.from({ length }, (_, k) => Object.fromEntries(columns.map(([field, values]) => [field, values[k]])));
  }

  function column(packed, length) {
    if (Array.isArray(packed)) return packed;
    return packed.texts ? packed.codes.map((k) => packed.texts[k]) : new Array(length).fill(packed.all);
  }

  const ofOutput = (parts) => parts[Math.min(choice.output, parts.length - 1)];

  // Pictures: drawn when they come near, drawn again when the output, the row, the width or the colours change.

  const pictures = Array.from(document.querySelectorAll(".picture"), (holder) => ({
    holder,
    near: false,
    stale: true,
    turn: 0,
    drawn: null,
  }));

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const [ink, muted, line, grid] = ["ink", "muted", "line", "grid"].map((name) =>
      style.getPropertyValue(`--${name}`).trim()
    );
    const words = { labelColor: ink, titleColor: muted, labelFontSize: 12, titleFontSize: 12 };
    return {
      aria: false, // the picture as a whole has a name, and its table the numbers
      background: "transparent",
      axis: { ...words, domainColor: line, tickColor: line, gridColor: grid },
      legend: words,
      header: words,
      title: { color: ink, subtitleColor: muted },
      text: { color: ink },
      rule: { color: muted },
      style: { whisker: { color: ink, stroke: ink } },
      view: { stroke: "transparent" },
    };
  }

  function merged(base, extra) {
    const out = { ...base };
    for (const [key, value] of Object.entries(extra)) {
      const both = value && typeof value === "object" && out[key] && typeof out[key] === "object";
      out[key] = both ? merged(out[key], value) : value;
    }
    return out;
  }

  function filled(holder) {
    const { spec, data } = ofOutput(payload.pictures[holder.id]);
    const full = structuredClone(payload.specs[spec]);
    const isRow = holder.id === "waterfall";
    const records = isRow ? unpack(ofOutput(choice.row.waterfall)) : null;
    full.datasets = Object.fromEntries(
      Object.entries(data).map(([name, parts]) => [name, records || unpack(ofOutput(parts))])
    );
    full.config = merged(payload.config, colours());
    if (isRow) fitSteps(full, records);
    if ("natural" in holder.dataset) {
      if (holder.clientWidth < NARROW) full.config.legend.orient = "bottom";
    } else {
      full.width = holder.clientWidth;
      full.autosize = { type: "fit-x", contains: "padding" };
      squeeze(full, full.width, holder.id.startsWith("effect-"));
    }
    return full;
  }

  // On a narrow picture names take less room, and numbers printed beside bars, not in columns, keep theirs.

  function squeeze(spec, width, inColumns) {
    for (const { x, y } of spec.layer.map(({ encoding }) => encoding)) {
      if (y?.axis?.labelLimit) y.axis.labelLimit = Math.min(y.axis.labelLimit, 0.4 * width);
      if (width < NARROW && !inColumns && x?.scale?.domain?.[0] < 0) x.scale.padding = PRINTED;
      if (x?.axis && x.type === "quantitative") x.axis.labelBound = true;
      if (x?.axis && x.type !== "quantitative") Object.assign(x.axis, { labelOverlap: "greedy", labelSeparation: 4 });
    }
  }

  // One drawing serves every row: its scales are those of the steps it is given.

  function fitSteps(spec, steps) {
    const ends = steps.flatMap(({ start, end }) => [start, end]);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const domain = high - low > payload.rounding ? [low, high] : [low - 1, high + 1];
    for (const { encoding } of spec.layer) {
      if (encoding.x?.scale) Object.assign(encoding.x.scale, { domain, padding: PRINTED + 20 });
      if (encoding.y?.scale) encoding.y.scale.domain = steps.map(({ name }) => name);
    }
    spec.height = spec.height.step * steps.length;
  }

  async function draw(picture) {
    if (!picture.holder.clientWidth) return; // hidden by the find box: drawn when it comes back
    const turn = ++picture.turn;
    picture.stale = false;
    const canvas = make("div");
    try {
      const spec = filled(picture.holder);
      const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, tooltip };
      const drawn = await vegaEmbed(canvas, spec, options);
      if (turn !== picture.turn) return drawn.finalize();
      if (picture.drawn) picture.drawn.finalize();
      picture.drawn = drawn;
      picture.holder.replaceChildren(canvas);
    } catch (error) {
      picture.holder.replaceChildren(make("p", `This picture cannot be drawn: ${error.message}`, "failed"));
    }
    picture.holder.dataset.drawn = String(turn);
  }

  function redraw(which) {
    for (const picture of pictures.filter(which)) {
      picture.stale = true;
      if (picture.near) draw(picture);
    }
  }

  function drawAll() {
    for (const picture of pictures) if (picture.stale) draw(picture);
  }

  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const picture = pictures.find(({ holder }) => holder === entry.target);
        picture.near = entry.isIntersecting;
        if (picture.near && picture.stale) draw(picture);
      }
    },
    { rootMargin: NEAR }
  );

  // What a mark says when the pointer is over it.

  const tip = document.getElementById("tip");

  function tooltip(_handler, event, _item, value) {
    const said = value !== null && value !== undefined && value !== "";
    tip.hidden = !said;
    if (!said) return;
    const lines = typeof value === "object" ? Object.entries(value) : [["", value]];
    tip.replaceChildren(...lines.flatMap(([key, text]) => [make("span", key), make("bdi", String(text))]));
    const place = (at, size, room) => `${Math.max(4, Math.min(at + 14, room - size - 4))}px`;
    tip.style.left = place(event.clientX, tip.offsetWidth, window.innerWidth);
    tip.style.top = place(event.clientY, tip.offsetHeight, window.innerHeight);
  }

  // The table behind a picture, made when it is opened, and the file with all of it.

  const KINDS = ["base", "feature", "rest", "residual", "total"];

  function fromLargest(lines) {
    const place = ({ kind, value }) => [KINDS.indexOf(kind), -Math.abs(value)];
    const compare = ([a, b], [c, d]) => a - c || b - d;
    return lines.map((line) => [place(line), line]).sort(([a], [b]) => compare(a, b)).map(([, line]) => line);
  }

  function lines(key) {
    return key === "row" ? fromLargest(unpack(ofOutput(choice.row.table))) : unpack(ofOutput(payload.tables[key]));
  }

  function allLines(key) {
    if (key !== "row") return payload.tables[key].flatMap(unpack);
    return payload.rows.flatMap(({ row, table }) =>
      table.flatMap((part, k) => unpack(part).map((line) => ({ row, output: payload.outputs[k], ...line })))
    );
  }

  function wrapped(tag, children) {
    const element = make(tag);
    element.append(...children);
    return element;
  }

  function cell(tag, text, kind) {
    const made = make(tag, text, kind === "text" ? "" : "number");
    if (tag === "th") made.scope = "col";
    return made;
  }

  function fill(details) {
    const key = details.dataset.table;
    const listed = payload.listed[key].filter(({ only }) => only !== "file");
    const head = wrapped("tr", listed.map(({ title, kind }) => cell("th", title, kind)));
    const body = lines(key).map((record) =>
      wrapped("tr", listed.map(({ field, kind }) => cell("td", shown(record[field], kind), kind)))
    );
    details.querySelector(".scroll").replaceChildren(
      wrapped("table", [wrapped("thead", [head]), wrapped("tbody", body)])
    );
  }

  function csv(key) {
    const quoted = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const listed = payload.listed[key].filter(({ only }) => only !== "page");
    const head = listed.map(({ title }) => quoted(title)).join(",");
    const body = allLines(key).map((record) => listed.map(({ field }) => quoted(record[field])).join(","));
    return [head, ...body, ""].join("\r\n");
  }

  function download({ dataset }) {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([csv(dataset.table)], { type: "text/csv;charset=utf-8" }));
    const name = dataset.file.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
    link.download = `${name.slice(0, 80) || "table"}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const tables = Array.from(document.querySelectorAll("details[data-table]"));

  function refill(which) {
    for (const details of tables) if (details.open && which(details.dataset.table)) fill(details);
  }

  // The output that everything shows.

  function chooseOutput(k) {
    choice.output = k;
    redraw(() => true);
    refill(() => true);
    describeRow();
  }

  // The row explorer.

  const picker = document.getElementById("row");

  function total(row) {
    const steps = unpack(ofOutput(row.table));
    return steps[steps.length - 1].value;
  }

  function describeRow() {
    if (!choice.row) return;
    for (const option of picker.options) option.textContent = nameOfRow(payload.rows[option.value]);
    document.getElementById("row-title").textContent = nameOfRow(choice.row);
    document.getElementById("row-note").textContent = choice.row.outside
      ? "This row holds a combination of levels that never occurred; the effects of that combination count as 0."
      : "";
    document.getElementById("previous").disabled = picker.selectedIndex <= 0;
    document.getElementById("next").disabled = picker.selectedIndex >= picker.options.length - 1;
  }

  function nameOfRow(row) {
    return `Row ${row.row}: ${shown(total(row), "value")}`;
  }

  function chooseRow() {
    choice.row = payload.rows[picker.value];
    redraw(({ holder }) => holder.id === "waterfall");
    refill((key) => key === "row");
    describeRow();
  }

  function step(by) {
    picker.selectedIndex = Math.max(0, Math.min(picker.options.length - 1, picker.selectedIndex + by));
    chooseRow();
  }

  function keepRows(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const said = (row) => unpack(row.table[0]).map(({ feature, level }) => `${feature}=${level}`).join(" ").toLowerCase();
    const kept = payload.rows.map((row, k) => [row, k]).filter(([row]) => words.every((word) => said(row).includes(word)));
    const note = document.getElementById("kept");
    note.textContent = `${kept.length} of ${payload.rows.length} rows`;
    if (!kept.length) return;
    picker.replaceChildren(
      ...kept.map(([row, k]) => {
        const option = make("option", nameOfRow(row));
        option.value = k;
        option.selected = row === choice.row;
        return option;
      })
    );
    chooseRow();
  }

  // The find box of features.

  function find(text) {
    const wanted = text.toLowerCase();
    const cards = Array.from(document.querySelectorAll("#effects figure"));
    for (const card of cards) card.hidden = !card.dataset.name.toLowerCase().includes(wanted);
    const found = cards.filter((card) => !card.hidden).length;
    document.getElementById("found").textContent = wanted ? `${found} of ${cards.length} features` : "";
  }

  // What happens when.

  const on = (id, event, act) => document.getElementById(id)?.addEventListener(event, act);

  on("output", "change", ({ target }) => chooseOutput(Number(target.value)));
  on("row", "change", chooseRow);
  on("previous", "click", () => step(-1));
  on("next", "click", () => step(1));
  on("filter", "input", ({ target }) => keepRows(target.value));
  on("find", "input", ({ target }) => find(target.value));
  for (const details of tables) details.addEventListener("toggle", () => details.open && fill(details));
  for (const button of document.querySelectorAll("button[data-file]")) button.addEventListener("click", () => download(button));

  function onPaper(isPaper) {
    if (isPaper) document.documentElement.dataset.paper = "";
    else delete document.documentElement.dataset.paper;
    for (const picture of pictures) picture.stale = true;
    if (isPaper) drawAll();
    else redraw(({ near }) => near);
  }

  window.addEventListener("beforeprint", () => onPaper(true));
  window.addEventListener("afterprint", () => onPaper(false));
  matchMedia("print").addEventListener("change", ({ matches }) => onPaper(matches));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(() => true));

  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => redraw(() => true), 150);
  });

  if (payload.rows.length) keepRows("");
  refill(() => true);
  for (const { holder } of pictures) observer.observe(holder);
})();
