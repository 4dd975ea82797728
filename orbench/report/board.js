
// -- a leaderboard of many models: a filter; without one, the first ten -------------------------------

const models = byId("models");
models.hidden = false;
models.oninput = () => {
  const board = document.querySelector(".board"), wanted = new FormData(models);
  const name = wanted.get("name").toLowerCase(), families = wanted.getAll("family");
  board.classList.toggle("top", ![...wanted.values()].join(""));
  for (const row of board.tBodies[0].rows) {
    row.hidden = families.length && !families.includes(row.dataset.family)
      || !row.cells[1].textContent.toLowerCase().includes(name);
  }
};
models.oninput();
