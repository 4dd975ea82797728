"use strict";
// Texts of prompts and responses come from models and people: they are only ever set as textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const RESULT = 0, CATEGORY = 1, VERDICT = 2, PROMPT = 3, RESPONSE = 4, WHY = 5;
const AT_ONCE = 100;
const ANY_REFUSAL = "refused";
const FILTERS = [["result", RESULT], ["category", CATEGORY], ["verdict", VERDICT]];
for (const row of data.rows) row[RESULT] = data.results[row[RESULT]];
const byId = (id) => document.getElementById(id);
const rows = (n) => `${n.toLocaleString("en")} ${n === 1 ? "row" : "rows"}`;
const refused = (row) => data.refusals.includes(row[VERDICT]);
const node = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};
let view = {}, found = [], drawn = 0;

// The view is in the URL, so that it can be shared.
function go(changes, step = "pushState") {
  view = {...view, ...changes};
  history[step](null, "", `#${new URLSearchParams(Object.entries(view).filter(([, v]) => v))}`);
  filter();
}

function load() {
  view = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  filter();
}

// -- tables ----------------------------------------------------------------------------------------

for (const table of document.querySelectorAll("table:not(.matrix, .heat)")) {
  const asWritten = [...table.tBodies[0].rows];
  [...table.tHead.rows[0].cells].forEach((th, column) => th.querySelector("button")?.addEventListener("click", () => {
    const order = {ascending: "descending", descending: ""}[th.getAttribute("aria-sort")] ?? "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    if (order) th.setAttribute("aria-sort", order);
    const up = order !== "descending";
    const sorted = order ? [...asWritten].sort((a, b) => compare(key(a, column), key(b, column), up)) : asWritten;
    table.tBodies[0].append(...sorted);
  }));
}

function key(row, column) {
  const cell = row.cells[column], value = cell.dataset.value;
  return value === undefined ? cell.textContent : value === "" ? NaN : Number(value);
}

function compare(a, b, up) {
  const missing = (value) => value === "" || Number.isNaN(value);  // missing values come last
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const order = typeof a === "number" ? a - b : a.localeCompare(b, "en", {numeric: true});
  return up ? order : -order;
}

// -- prompts and responses -------------------------------------------------------------------------

for (const button of document.querySelectorAll("button.behind")) {
  const {category} = button.dataset, result = data.results[button.dataset.result];
  button.addEventListener("click", () => {
    go({result, category, verdict: "", text: ""});
    byId("rows").scrollIntoView();
  });
}
for (const [id] of FILTERS) {
  byId(id).addEventListener("change", () => go({[id]: byId(id).value}));
}
byId("text").addEventListener("input", () => go({text: byId("text").value}, "replaceState"));
byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("more").addEventListener("click", draw);

function filter() {
  const wanted = FILTERS.map(([id]) => {
    if (view[id] === ANY_REFUSAL) return data.refusals;
    return view[id] ? [view[id]] : null;
  });
  // Whether a row passes all filters; all but one, for what that one can offer.
  const fits = (row, but) => FILTERS.every(([id, field], i) => id === but || !wanted[i]
    || wanted[i].includes(row[field]));
  for (const [id, field] of FILTERS) {
    const there = new Set(data.rows.filter((row) => fits(row, id)).map((row) => row[field]));
    const options = [...there].sort();
    if (id === "verdict" && data.refusals.some((name) => there.has(name))) options.unshift(ANY_REFUSAL);
    if (view[id] && !options.includes(view[id])) options.push(view[id]);
    byId(id).replaceChildren(...["", ...options].map((value) => {
      const text = {"": "all", [ANY_REFUSAL]: "any refusal"}[value] ?? value.replace("_", " ");
      const option = node("option", "", text);
      option.value = value;
      option.selected = value === view[id];
      return option;
    }));
  }
  const text = (view.text ?? "").toLowerCase();
  if (byId("text").value !== (view.text ?? "")) byId("text").value = view.text ?? "";
  found = data.rows.filter((row) => fits(row) && (!text || row[PROMPT].toLowerCase().includes(text)
    || row[RESPONSE].toLowerCase().includes(text)));
  found.sort((a, b) => refused(b) - refused(a));
  const all = data.rows.length < data.total
    ? `; this page holds ${data.rows.length.toLocaleString("en")} of ${rows(data.total)}, evenly spaced` : "";
  byId("count").textContent = `${rows(found.length)}, refused first${all}.`;
  byId("list").replaceChildren();
  drawn = 0;
  // Nothing is drawn before somebody asks for it.
  if (Object.values(view).some((value) => value)) draw();
  else byId("more").hidden = false;
}

function draw() {
  const next = found.slice(drawn, drawn + AT_ONCE);
  byId("list").append(...next.map(article));
  drawn += next.length;
  byId("more").textContent = "Show 100 more";
  byId("more").hidden = drawn >= found.length;
}

function article(row) {
  const made = node("article", "", "");
  const about = node("div", refused(row) ? "about refused" : "about", "");
  const verdict = refused(row) ? "refused" : "answered";
  about.append(
    node("b", "verdict", row[WHY] ? `${verdict}: ${row[WHY]}` : verdict),
    node("span", "", row[VERDICT].replace("_", " ")),
    node("span", "", row[RESULT]), node("span", "", row[CATEGORY]));
  made.append(about, node("p", "prompt", row[PROMPT]),
    node("p", "response", row[RESPONSE] || "(no text)"));
  return made;
}

addEventListener("popstate", load);
load();
