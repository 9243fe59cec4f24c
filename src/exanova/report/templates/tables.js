// The table behind a picture, made when it is opened, and the file with all of it.

function shown(value, kind) {
  if (!known(value)) return "";
  if (kind === "percent") return percent(value);
  if (kind === "error") return plain(value, 2);
  if (kind === "value" && isZero(value)) return "0";
  if (value === true || value === false) return value ? "yes" : "no";
  return typeof value === "number" ? plain(value, 4) : String(value) || "(empty)";
}

// Tables by name: of effects and pairs from the effects themselves, of rows from the row that is chosen.

const sources = new Map(); // name -> { lines(output), all(), listed }

function source(key) {
  if (sources.has(key)) return sources.get(key);
  const parts = payload.tables[key];
  const amount = ({ share, value }) => share * Math.abs(value);
  const unsorted = (output) => unpack(parts[Math.min(output, parts.length - 1)]);
  const lines = key.startsWith("higher-") ? (output) => unsorted(output).sort((a, b) => amount(b) - amount(a)) : unsorted;
  return { lines, all: () => parts.flatMap(unpack), listed: payload.listed[key] };
}

function perOutput(lines, listed) {
  const all = () => payload.outputs.flatMap((output, k) => lines(k).map((line) => ({ output, ...line })));
  return { lines, all, listed: [{ field: "output", title: "output", kind: "text", only: "file" }, ...listed] };
}

function cell(tag, text, kind) {
  const made = make(tag, text, kind === "text" ? "" : "number");
  if (tag === "th") made.scope = "col";
  return made;
}

function fill(details) {
  const { lines, listed } = source(details.dataset.table);
  const records = lines(choice.output);
  const optional = ({ field, only }) => only !== "file" && (field === "value" || records.some((line) => known(line[field])));
  const columns = listed.filter(optional);
  const head = wrapped("tr", columns.map(({ title, kind }) => cell("th", title, kind)));
  const body = records.map((line) => wrapped("tr", columns.map(({ field, kind }) => cell("td", shown(line[field], kind), kind))));
  details.querySelector(".scroll").replaceChildren(wrapped("table", [wrapped("thead", [head]), wrapped("tbody", body)]));
}

// Text that a spreadsheet would execute gets an apostrophe in front, as in exports; numbers stay numbers.

const FORMULA = /^'*[=+\-@\t\r＝＋－＠]/;
const harmless = (value) => (typeof value === "string" && FORMULA.test(value) && !Number.isFinite(Number(value)) ? `'${value}` : String(value));

function csv(key) {
  const quoted = (value) => {
    const text = known(value) ? harmless(value) : "";
    return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const { all, listed } = source(key);
  const columns = listed.filter(({ only }) => only !== "page");
  const head = columns.map(({ title }) => quoted(title)).join(",");
  const body = all().map((line) => columns.map(({ field }) => quoted(line[field])).join(","));
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

function watchTable(details) {
  details.addEventListener("toggle", () => details.open && fill(details));
  details.querySelector("button").addEventListener("click", ({ currentTarget }) => download(currentTarget));
}

function makeTable(key, title, file) {
  const scroll = make("div", undefined, "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `${title}: ${file}`);
  const button = make("button", "Download as CSV");
  button.type = "button";
  button.dataset.file = file;
  button.dataset.table = key;
  button.append(make("span", `: ${file}`, "unseen"));
  const details = wrapped("details", [make("summary", title), scroll, button]);
  details.dataset.table = key;
  watchTable(details);
  return details;
}

function refill(which = () => true) {
  for (const details of document.querySelectorAll("details[data-table]"))
    if (details.open && which(details.dataset.table)) fill(details);
}
