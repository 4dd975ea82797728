"use strict";
const byId = (id) => document.getElementById(id);

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

for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => {
  const sentence = button.previousElementSibling;
  getSelection().selectAllChildren(sentence);  // for where a page may not copy
  navigator.clipboard?.writeText(sentence.textContent).then(() => button.textContent = "Copied", () => {});
});

const chosen = byId("with");
chosen?.addEventListener("change", () => {
  const table = document.querySelector("#differences details table"), {value} = chosen;
  table.closest("details").open = value;
  for (const row of table.tBodies[0].rows) {
    row.hidden = value && [...row.cells].slice(0, 2).every((cell) => cell.textContent !== value);
  }
});
chosen?.dispatchEvent(new Event("change"));
