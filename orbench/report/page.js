"use strict";
// Texts of prompts and responses come from models and people: they are only ever set as textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const MODEL = 0, SIDE = 1, CATEGORY = 2, VERDICT = 3, PROMPT = 4, RESPONSE = 5, WHY = 6, API = 7;
const PAGE = 50;
const FILTERS = [["model", MODEL, data.models], ["side", SIDE, data.sides],
  ["category", CATEGORY, data.categories], ["verdict", VERDICT, data.verdicts]];
const ANY_REFUSAL = "refused";
const byId = (id) => document.getElementById(id);
const rows = (n) => `${n.toLocaleString("en")} ${n === 1 ? "row" : "rows"}`;
const node = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};
let found = [], drawn = 0;

// ------------------------------------------------------------------ tables
for (const head of document.querySelectorAll("thead button")) {
  head.addEventListener("click", () => sort(head.parentElement));
}

function sort(th) {
  const column = th.cellIndex, body = th.closest("table").tBodies[0];
  const up = th.getAttribute("aria-sort") !== "ascending";
  for (const other of th.parentElement.cells) other.removeAttribute("aria-sort");
  th.setAttribute("aria-sort", up ? "ascending" : "descending");
  const key = (row) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  };
  const missing = (value) => value === "" || value === "–" || Number.isNaN(value);
  const rows = [...body.rows].map((row) => [key(row), row]);
  rows.sort(([a], [b]) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);  // what is not measured comes last
    const order = typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), "en", {numeric: true});
    return up ? order : -order;
  });
  body.append(...rows.map(([, row]) => row));
}

for (const button of document.querySelectorAll("button.behind")) {
  button.addEventListener("click", () => {
    byId("filter").reset();
    byId("model").value = button.dataset.model;
    byId("side").value = button.dataset.side;
    byId("category").value = button.dataset.category;
    show();
    byId("rows").scrollIntoView();
  });
}

// ------------------------------------------------------------------ prompts and responses
for (const [id, , names] of FILTERS) {
  const options = [["", "all"], ...(id === "verdict" ? [[ANY_REFUSAL, "any refusal"]] : [])];
  names.forEach((name) => options.push([name, id === "side" ? data.side_names[name] : name]));
  for (const [value, text] of options) {
    const option = node("option", "", text);
    option.value = value;
    byId(id).append(option);
  }
  byId(id).addEventListener("change", show);
}
byId("text").addEventListener("input", show);
byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("reset", () => setTimeout(show));
byId("more").addEventListener("click", draw);

function show() {
  const wanted = FILTERS.map(([id, field, names]) => {
    const value = byId(id).value;
    if (value === "") return null;
    if (value === ANY_REFUSAL) return [field, new Set(data.refusals.map((n) => names.indexOf(n)))];
    return [field, new Set([names.indexOf(value)])];
  }).filter(Boolean);
  const fits = (row) => wanted.every(([field, allowed]) => allowed.has(row[field]));
  const text = byId("text").value.toLowerCase();
  found = data.rows.filter((row) => fits(row) && (!text
    || data.prompts[row[PROMPT]].toLowerCase().includes(text)
    || row[RESPONSE].toLowerCase().includes(text)));
  const all = data.counts.filter(fits).reduce((sum, count) => sum + count[4], 0);
  const held = text ? data.rows.filter(fits).length : found.length;
  let line = text ? `${rows(found.length)} with this text among ` : "";
  line += `${held.toLocaleString("en")} of ${rows(all)}`;
  if (held < all) {
    line += `: this page holds ${data.rows.length.toLocaleString("en")} of all `
      + `${rows(data.total)}, evenly spaced; --html_rows sets how many`;
  }
  byId("count").textContent = line + ".";
  byId("list").replaceChildren();
  drawn = 0;
  draw();
}

function draw() {
  const next = found.slice(drawn, drawn + PAGE);
  byId("list").append(...next.map(article));
  drawn += next.length;
  byId("more").hidden = drawn >= found.length;
}

function article(row) {
  const verdict = data.verdicts[row[VERDICT]], refused = data.refusals.includes(verdict);
  const made = node("article", "", "");
  const about = node("div", refused ? "about refused" : "about", "");
  about.append(node("b", "verdict", verdict.replace("_", " ") + (row[API] ? " (by the API)" : "")),
    node("span", "", data.models[row[MODEL]]), node("span", "", data.categories[row[CATEGORY]]),
    node("span", "", data.side_names[data.sides[row[SIDE]]]));
  made.append(about, node("p", "prompt", data.prompts[row[PROMPT]]),
    node("p", "response", row[RESPONSE] || "(no text)"));
  if (row[WHY]) made.append(node("p", "why", row[WHY]));
  return made;
}

show();
