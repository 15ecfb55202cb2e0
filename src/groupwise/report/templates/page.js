"use strict";
// Tables that can be sorted and searched. Without this script they are as they were written.
for (const box of document.querySelectorAll("[data-sortable]")) {
  const table = box.querySelector("table"), body = table.tBodies[0];
  const written = [...body.rows], first = Number(box.dataset.first) || written.length;
  const tools = box.querySelector(".tools"), found = tools.querySelector("[role=status]");
  const search = tools.querySelector("input"), more = tools.querySelector("button");
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const texts = written.map(row => [...row.cells].filter(cell => !cell.matches(".numeric"))
    .map(cell => cell.textContent).join(" ").toLowerCase());
  const places = new Map(written.map((row, place) => [row, place]));
  let order = written, all = first >= written.length;

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let matching = 0, shown = 0;
    for (const row of order) {
      const fits = words.every(word => texts[places.get(row)].includes(word));
      matching += fits;
      const later = fits && !all && matching > first;
      row.hidden = !fits || later;
      row.classList.toggle("later", later);  // on paper they are there
      shown += !row.hidden;
    }
    found.textContent = `${shown} of ${written.length} shown`;
    more.hidden = all || matching <= first;
    more.textContent = `Show all ${matching}`;
    cue();
  }

  function sorted(place, sign) {
    const numeric = heads[place].matches(".numeric");
    const value = row => {
      const cell = row.cells[place];
      if (!numeric) return cell.textContent.trim();
      const text = cell.dataset.value ?? cell.textContent.replace(/[,\s]/g, "").replace("−", "-");
      return text === "" ? NaN : Number.parseFloat(text);
    };
    const keys = new Map(written.map(row => [row, value(row)]));
    return [...written].sort((one, other) => {
      const a = keys.get(one), b = keys.get(other);
      if (numeric && (Number.isNaN(a) || Number.isNaN(b))) return Number.isNaN(a) - Number.isNaN(b);
      return sign * (numeric ? a - b : a.localeCompare(b, undefined, {numeric: true}));
    });
  }

  heads.forEach((head, place) => {
    const button = document.createElement("span");  // a real one is left out of repeated headings
    button.tabIndex = 0;
    button.setAttribute("role", "button");
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    const ways = head.matches(".numeric") ? ["descending", "ascending"] : ["ascending", "descending"];
    button.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    });
    button.addEventListener("click", () => {
      const way = ways[ways.indexOf(head.getAttribute("aria-sort")) + 1];
      for (const one of heads) one.removeAttribute("aria-sort");
      if (way) head.setAttribute("aria-sort", way);
      order = way ? sorted(place, way === "ascending" ? 1 : -1) : written;
      body.append(...order);
      show();
    });
  });

  const scroll = box.querySelector(".scroll");
  function cue() {
    const rest = scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft;
    box.classList.toggle("more", rest > 2);
    box.classList.toggle("fits", scroll.scrollWidth <= scroll.clientWidth + 2);
  }
  scroll.addEventListener("scroll", cue, {passive: true});
  addEventListener("resize", cue);
  search.addEventListener("input", show);
  more.addEventListener("click", () => { all = true; show(); search.focus(); });
  tools.hidden = false;
  show();
}
