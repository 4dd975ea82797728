"use strict";
const byId = (id) => document.getElementById(id);
const value = (cell) => cell.dataset.value ?? cell.textContent;

for (const button of document.querySelectorAll("thead button")) button.addEventListener("click", () => {
  const th = button.parentNode, [body] = button.closest("table").tBodies;
  const up = th.ariaSort !== "ascending";
  for (const other of th.parentNode.cells) other.ariaSort = null;
  th.ariaSort = up ? "ascending" : "descending";
  const key = (row) => value(row.cells[th.cellIndex]);
  body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b), up)));
});

function compare(a, b, up) {
  if (!a || !b) return !a - !b;  // missing values come last
  const order = a - b || a.localeCompare(b, "en", {numeric: true});
  return up ? order : -order;
}

for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => {
  const sentence = button.previousElementSibling;
  getSelection().selectAllChildren(sentence);  // for where a page may not copy
  navigator.clipboard?.writeText(sentence.textContent).then(() => button.textContent = "Copied", () => {});
});

// The leaderboard of many models: those of a name and a family; without either, the first ten.
const models = byId("models");
models?.addEventListener("input", () => {
  const wanted = new FormData(models), name = wanted.get("name").toLowerCase(), families = wanted.getAll("family");
  const [body] = document.querySelector(".board").tBodies;
  body.className = [...wanted.values()].join("") ? "" : "top";
  for (const row of body.rows) {
    const isOther = families.length && !families.includes(row.dataset.family);
    row.hidden = isOther || !row.cells[1].textContent.toLowerCase().includes(name);
  }
});
models?.dispatchEvent(new Event("input"));

const chosen = byId("with");
chosen?.addEventListener("change", () => {
  for (const row of document.querySelectorAll("#differences tbody tr")) {
    row.hidden = chosen.value && ![...row.cells].map(value).includes(chosen.value);
  }
});
chosen?.dispatchEvent(new Event("change"));
