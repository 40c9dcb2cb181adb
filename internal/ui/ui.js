"use strict";
// The live parts of a page are replaced by those of a new request.
const every = Number(document.body.dataset.every) * 1000;
async function refresh() {
  const active = document.activeElement;
  if (document.hidden || !getSelection().isCollapsed || (active && active.closest("[data-live] form"))) return;
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(answer.statusText);
    const now = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-live]")) {
      const fresh = now.getElementById(old.id);
      if (!fresh) continue;
      const at = active && old.contains(active) ? [...old.querySelectorAll("a")].indexOf(active) : -1;
      old.replaceWith(fresh);
      if (at >= 0) fresh.querySelectorAll("a")[at]?.focus({preventScroll: true});
    }
    document.getElementById("offline").hidden = true;
  } catch {
    document.getElementById("offline").hidden = false;
  }
}
if (every && document.querySelector("[data-live]")) setInterval(refresh, every);
// A file has no server that sorts: a click on the head of a column does.
for (const table of document.querySelectorAll("table[data-sort]")) {
  table.querySelectorAll("th").forEach((head, n) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const down = head.ariaSort !== "descending" ? -1 : 1;
      table.querySelectorAll("th").forEach((h) => h.removeAttribute("aria-sort"));
      head.ariaSort = down < 0 ? "descending" : "ascending";
      const key = (row) => row.cells[n].dataset.key ?? row.cells[n].textContent;
      const order = (a, b) => a - b || String(a).localeCompare(String(b));
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => down * order(key(a), key(b))));
    };
  });
}
