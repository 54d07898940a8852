// Sorts a table of the atlas by the column whose heading is clicked, and hides rows without the words typed.
["atlas-table", "samplers-table"].forEach((identity) => {
  const table = document.getElementById(identity);
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const key = (row, column) => {
    const text = row.cells[column].textContent;
    const number = Number(text);
    return text === "" ? null : Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) =>
    a === null || b === null ? (a === null) - (b === null) : a < b ? -1 : a > b ? 1 : 0;

  table.tHead.addEventListener("click", (event) => {
    const cell = event.target.closest("th");
    if (!cell) return;
    const up = cell.getAttribute("aria-sort") !== "ascending";
    [...table.tHead.rows[0].cells].forEach((c) => c.removeAttribute("aria-sort"));
    cell.setAttribute("aria-sort", up ? "ascending" : "descending");
    rows.sort((a, b) => {
      const [x, y] = [key(a, cell.cellIndex), key(b, cell.cellIndex)];
      return compare(x, y) * (up || x === null || y === null ? 1 : -1);
    });
    body.append(...rows);
  });

  if (identity !== "atlas-table") return;
  document.getElementById("atlas-filter").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    });
  });
});
