"use strict";
// Texts of prompts and responses come from models and people: they are only ever set as textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const RESULT = 0, CATEGORY = 1, VERDICT = 2, PROMPT = 3, RESPONSE = 4, WHY = 5, API = 6;
const PAGE = 50;
const FILTERS = [["result", RESULT, data.results], ["category", CATEGORY, data.categories],
  ["verdict", VERDICT, data.verdicts]];
const ANY_REFUSAL = "refused";
const byId = (id) => document.getElementById(id);
const rows = (n) => `${n.toLocaleString("en")} ${n === 1 ? "row" : "rows"}`;
const refused = (row) => data.refusals.includes(data.verdicts[row[VERDICT]]);
const node = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};
const tables = [...document.querySelectorAll("table")];
const asWritten = tables.map((table) => [...table.tBodies[0].rows]);
let view = {}, found = [], drawn = 0;

// The view is in the URL.
function go(changes, step = "pushState") {
  view = {...view, at: "", ...changes};
  history[step](null, "", `#${new URLSearchParams(Object.entries(view).filter(([, v]) => v))}`);
  show();
}

function load() {
  view = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  show();
}

function show() {
  tables.forEach(sort);
  filter();
  if (["tables", "pictures", "rows"].includes(view.at)) byId(view.at).scrollIntoView();
}

for (const link of document.querySelectorAll("nav a")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    go({at: link.hash.slice(1)});
  });
}

tables.forEach((table, number) => {
  [...table.tHead.rows[0].cells].forEach((th, column) => th.firstChild.addEventListener("click", () => {
    const down = th.getAttribute("aria-sort") === "ascending";
    go({sort: `${number}.${column}.${down ? "descending" : "ascending"}`});
  }));
});

function sort(table, number) {
  const [of, column, order] = (view.sort ?? "").split("."), heads = table.tHead.rows[0].cells;
  for (const th of heads) th.removeAttribute("aria-sort");
  if (Number(of || -1) !== number || !heads[column]) {
    table.tBodies[0].append(...asWritten[number]);
    return;
  }
  const up = order === "ascending";
  heads[column].setAttribute("aria-sort", up ? order : "descending");
  const key = (row) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  };
  const missing = (value) => value === "" || value === "–" || Number.isNaN(value);
  const rows = asWritten[number].map((row) => [key(row), row]);
  rows.sort(([a], [b]) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);  // what is not measured comes last
    const order = typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), "en", {numeric: true});
    return up ? order : -order;
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const button of document.querySelectorAll("button.behind")) {
  const {category} = button.dataset, result = data.results[button.dataset.result];
  button.addEventListener("click", () => go({result, category, verdict: "", text: "", at: "rows"}));
}

for (const [id] of FILTERS) {
  byId(id).addEventListener("change", () => go({[id]: byId(id).value, at: "rows"}));
}
byId("text").addEventListener("input",
  () => go({text: byId("text").value, at: "rows"}, "replaceState"));
byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("reset", (event) => {
  event.preventDefault();
  go({result: "", category: "", verdict: "", text: "", at: "rows"});
});
byId("more").addEventListener("click", draw);

function filter() {
  const wanted = FILTERS.map(([id, , names]) => {
    if (view[id] === ANY_REFUSAL) return data.refusals.map((name) => names.indexOf(name));
    return names.includes(view[id]) ? [names.indexOf(view[id])] : null;
  });
  // Whether a row passes all filters; all but one, for what that one can offer.
  const fits = (row, but) => FILTERS.every(([id, field], i) => id === but || !wanted[i]
    || wanted[i].includes(row[field]));
  for (const [id, field, names] of FILTERS) {
    const there = new Set(data.rows.filter((row) => fits(row, id)).map((row) => names[row[field]]));
    const options = names.filter((name) => there.has(name) || name === view[id]);
    if (id === "verdict" && data.refusals.some((name) => there.has(name))) options.unshift(ANY_REFUSAL);
    byId(id).replaceChildren(...["", ...options].map((value) => {
      const text = {"": "all", [ANY_REFUSAL]: "any refusal"}[value] ?? value;
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
    ? `; this page holds ${data.rows.length.toLocaleString("en")} of all ${rows(data.total)}, evenly spaced` : "";
  byId("count").textContent = `${rows(found.length)}${all}.`;
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
  const made = node("article", "", "");
  const about = node("div", refused(row) ? "about refused" : "about", "");
  about.append(
    node("b", "verdict", data.verdicts[row[VERDICT]].replace("_", " ") + (row[API] ? " (by the API)" : "")),
    node("span", "", data.results[row[RESULT]]), node("span", "", data.categories[row[CATEGORY]]));
  made.append(about, node("p", "prompt", row[PROMPT]),
    node("p", "response", row[RESPONSE] || "(no text)"));
  if (row[WHY]) made.append(node("p", "why", row[WHY]));
  return made;
}

addEventListener("popstate", load);
load();
