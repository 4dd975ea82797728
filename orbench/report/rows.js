
// Texts of prompts and responses come from models and people: they are only ever set as textContent.
const data = JSON.parse(byId("data").textContent);
const form = byId("filter");
const FILTERS = ["result", "category", "outcome"];
const STEPS = {ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1};
let found;

const rows = data.rows.map(([result, category, outcome, verdict, prompt, response, why]) =>
  ({result: data.results[result], category, outcome, verdict, prompt: data.prompts[prompt], response, why}));
for (const name of FILTERS) {
  const values = new Set(rows.map((row) => row[name]));
  for (const value of [...values].sort()) form[name].append(new Option(value));
}
// The view is in the URL, so that it can be shared, and so that a rate is a link to its rows.
form.addEventListener("input", () => {
  history.replaceState(null, "", `#${new URLSearchParams(new FormData(form))}`);
  load();
});
byId("more").addEventListener("click", draw);
addEventListener("popstate", arrive);
arrive();

function arrive() {
  const isSection = location.hash && !location.hash.includes("=");
  if (!isSection || !found) load();  // a link to a section leaves the view
  if (!location.hash || isSection) return;
  byId("count").focus();
  form.scrollIntoView();
}

function load() {
  const view = new URLSearchParams(location.hash.slice(1)), wanted = view.get("text") ?? "";
  for (const field of form.elements) field.value = view.get(field.name) ?? "";
  const text = wanted.toLowerCase();  // the field drops line breaks
  found = rows.filter((row) => FILTERS.every((name) => (view.get(name) || row[name]) === row[name])
    && [row.prompt, row.response].some((part) => part.toLowerCase().includes(text)));
  // The text of a prompt finds this prompt alone; all responses to it stand side by side.
  const together = found.filter((row) => row.prompt === wanted);
  if (together.length) found = together;
  byId("prompt").textContent = together[0]?.prompt;
  byId("list").className = together.length ? "together" : "";
  byId("list").replaceChildren();
  const of = location.hash ? view.get("of") : data.total;  // of a link, or all
  byId("count").textContent = `${found.length.toLocaleString("en")}${of ? ` of ${of}` : ""} on this page.`;
  // Nothing is drawn before somebody asks for it.
  if (location.hash.includes("=")) draw();
  else byId("more").hidden = false;
}

function draw() {
  byId("list").append(...found.splice(0, 100).map(article));
  byId("more").hidden = !found.length;
}

function article(row) {
  const made = byId("row").content.firstElementChild.cloneNode(true);
  made.className = row.outcome;
  for (const part of made.querySelectorAll("b, span, p")) part.textContent = row[part.className];
  return made;
}

// A heat map is one stop of the Tab key; arrow keys move in it.
for (const table of document.querySelectorAll(".heat")) {
  const links = [...table.querySelectorAll("a")];
  const stopAt = (link) => {
    for (const other of links) other.tabIndex = other === link ? 0 : -1;
  };
  stopAt(links[0]);
  table.addEventListener("keydown", (event) => {
    const cell = event.target.parentNode, inColumn = `tr > :nth-child(${cell.cellIndex + 1}) a`;
    const line = /Up|Down/.test(event.key) ? table.querySelectorAll(inColumn) : cell.parentNode.querySelectorAll("a");
    const next = line[[...line].indexOf(event.target) + STEPS[event.key]];
    if (!next) return;
    event.preventDefault();
    stopAt(next);
    next.focus();
  });
}
