
// Texts of prompts and responses come from models and people: they are only ever set as textContent.
const data = JSON.parse(byId("data").textContent);
const RESULT = 0, CATEGORY = 1, OUTCOME = 2, VERDICT = 3, PROMPT = 4, RESPONSE = 5, MORE = 6, WHY = 7;
const AT_ONCE = 100;
const FILTERS = [["result", RESULT], ["category", CATEGORY], ["verdict", OUTCOME]];
const STEPS = {ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1};
const number = (n) => n.toLocaleString("en");
const rows = (n) => `${number(n)} ${n === 1 ? "row" : "rows"}`;
const node = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};
let view, found, drawn;

for (const row of data.rows) {
  row[RESULT] = data.results[row[RESULT]];
  row[PROMPT] = data.prompts[row[PROMPT]];
}
for (const [id, field] of FILTERS) {
  const values = new Set(data.rows.map((row) => row[field]));
  for (const value of [...values].sort()) byId(id).append(new Option(value));
  byId(id).addEventListener("change", () => go({[id]: byId(id).value}));
}
byId("text").addEventListener("input", () => go({text: byId("text").value}, "replaceState"));
byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("more").addEventListener("click", draw);
addEventListener("popstate", load);
load();

document.addEventListener("click", ({target}) => {
  const button = target.closest("button.behind");
  if (!button) return;
  const {result, category, prompt} = button.dataset;
  go({result: data.results[result], category, verdict: "", text: data.prompts[prompt]});
  byId("rows").scrollIntoView();
  byId("count").focus({preventScroll: true});
});

// The view is in the URL, so that it can be shared.
function go(changes, step = "pushState") {
  const chosen = Object.entries({...view, ...changes}).filter(([, value]) => value);
  history[step](null, "", `#${new URLSearchParams(chosen)}`);
  load();
}

function load() {
  if (location.hash && !location.hash.includes("=")) return;  // a link to a section
  view = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  for (const id of ["result", "category", "verdict", "text"]) byId(id).value = view[id] ?? "";
  const text = (view.text ?? "").toLowerCase();  // the field drops line breaks
  found = data.rows.filter((row) => FILTERS.every(([id, field]) => !view[id] || view[id] === row[field])
    && [row[PROMPT], row[RESPONSE]].some((part) => part.toLowerCase().includes(text)));
  // The text of a prompt finds this prompt alone; all responses to it stand side by side.
  const together = found.filter((row) => row[PROMPT] === view.text);
  if (together.length) found = together;
  byId("list").className = together.length ? "together" : "";
  byId("list").replaceChildren(node("p", "", together[0]?.[PROMPT]));
  byId("count").textContent = said();
  drawn = 0;
  // Nothing is drawn before somebody asks for it.
  if (location.hash.includes("=")) draw();
  else byId("more").hidden = false;
}

function said() {
  const counts = data.counts[data.results.indexOf(view.result)]?.[view.category ?? ""];
  if (!counts || view.text || view.verdict) return `${rows(found.length)} on this page.`;
  const [scored, unscored] = counts;
  let text = rows(scored);
  if (found.length < scored) text += `, ${number(found.length)} of them on this page`;
  if (found.length) text += `, ${found[0][OUTCOME]} first`;
  if (unscored) text += `; ${number(unscored)} more have no verdict`;
  return `${text}.`;
}

function draw() {
  const next = found.slice(drawn, drawn + AT_ONCE);
  byId("list").append(...next.map(article));
  drawn += next.length;
  byId("more").textContent = "Show 100 more";
  byId("more").hidden = drawn >= found.length;
}

function article(row) {
  const made = node("article", row[OUTCOME], ""), about = node("div", "about", "");
  about.append(
    node("b", "verdict", row[WHY] ? `${row[OUTCOME]}: ${row[WHY]}` : row[OUTCOME]),
    ...[row[VERDICT].replace("_", " "), row[RESULT], row[CATEGORY]].map((text) => node("span", "", text)));
  const response = node("p", "response", row[RESPONSE] || "(no text)");
  if (row[MORE]) response.append(node("small", "", ` ... ${number(row[MORE])} more characters`));
  made.append(about, node("p", "prompt", row[PROMPT]), response);
  return made;
}

// A heat map is one stop of the Tab key; arrow keys move in it.
for (const table of document.querySelectorAll("table.heat")) {
  let [current, ...others] = table.querySelectorAll("button");
  for (const button of others) button.tabIndex = -1;
  table.addEventListener("focusin", ({target}) => {
    current.tabIndex = -1;
    current = target;
    current.tabIndex = 0;
  });
  table.addEventListener("keydown", (event) => {
    if (!STEPS[event.key]) return;
    event.preventDefault();
    const cell = current.parentNode, inColumn = `tr > :nth-child(${cell.cellIndex + 1}) button`;
    const line = /Up|Down/.test(event.key) ? table.querySelectorAll(inColumn) : cell.parentNode.querySelectorAll("button");
    line[[...line].indexOf(current) + STEPS[event.key]]?.focus();
  });
}
