"use strict";
/* The lists of a job and all that they name: bytes beside their meaning. */
(() => {
  const ROW = 20;
  const GROUPS = [["binning", "binning"], ["rendering", "rendering"], ["shader", "shader records"], ["program", "programs"], ["uniforms", "uniforms"], ["vertices", "vertices"], ["coordinates", "coordinates"], ["indices", "indices"]];
  const chosen = { job: 0, view: 0 };

  const rowsOf = async (place, job, view) => {
    const rows = [];
    let total = 1;
    while (rows.length < total) {
      const part = await V.ask("view", { frame: place.frame, edition: place.edition, job, view, first: rows.length });
      total = part.total;
      if (!part.rows.length) break;
      rows.push(...part.rows);
    }
    return rows;
  };

  const listing = (rows, job, view, focus) => {
    const draws = new Map(V.frame.draws.filter((one) => one.job === job).map((one) => [one.address, one.draw]));
    const space = V.el("div.space", { style: { height: `${rows.length * ROW}px` } });
    const list = V.el("div.code", { tabindex: "0" }, space);
    let found = rows;
    const line = (number) => {
      const [text, address, bytes, edits] = rows[number];
      const draw = draws.get(address);
      const now = draw && draw === V.place.draw;
      return V.el("div.line", { class: `${now ? "now" : ""}${edits ? "" : " says"}${draw ? " draw" : ""}`, style: { top: `${number * ROW}px` }, onclick: draw ? () => V.go({ draw }) : null, title: bytes.replace(/(..)/g, "$1 ").trim() },
        V.el("span.bytes", {}, bytes.slice(0, 24) + (bytes.length > 24 ? "…" : "")), edits ? V.editable(text, (value) => V.saveLine(job, view, number, value)) : V.el("span.faint", {}, text));
    };
    const show = () => {
      if (list.contains(document.activeElement) && document.activeElement.tagName === "INPUT") return;
      const first = Math.max(Math.floor(list.scrollTop / ROW) - 4, 0);
      const end = Math.min(first + Math.ceil((list.clientHeight || 600) / ROW) + 8, found.length);
      space.replaceChildren(...Array.from({ length: Math.max(end - first, 0) }, (_, at) => line(first + at)));
    };
    list.addEventListener("scroll", show);
    new ResizeObserver(show).observe(list);
    if (focus >= 0) requestAnimationFrame(() => { list.scrollTop = Math.max(focus * ROW - 120, 0); show(); });
    show();
    return list;
  };

  V.views.lists = {
    title: "Lists", key: "3", depends: ["frame", "edition", "job", "draw"],
    async render(place) {
      const job = V.jobNow();
      if (!job) return V.note("This frame has no lists: only user programs run in it.");
      const views = await V.ask("views", { frame: place.frame, edition: place.edition, job });
      if (!views.length) return V.note("This job has no lists.");
      if (chosen.job !== job) Object.assign(chosen, { job, view: 0 });
      chosen.view = Math.min(chosen.view, views.length - 1);
      const select = V.el("select", { "aria-label": "List", onchange: (event) => { chosen.view = Number(event.target.value); V.refresh(); } },
        GROUPS.map(([start, title]) => {
          const some = views.map((one, number) => [one, number]).filter(([one]) => one.name.startsWith(start));
          return some.length > 0 && V.el("optgroup", { label: title }, some.map(([one, number]) => V.el("option", { value: number, selected: number === chosen.view }, `${one.name.replace(/\.\w+$/, "")}${one.lines === null ? "" : `  (${one.lines})`}`)));
        }));
      const rows = await rowsOf(place, job, chosen.view);
      const draw = V.frame.draws[(place.draw || 0) - 1];
      const focus = draw ? rows.findIndex((row) => row[1] === draw.address && row[3]) : -1;
      return [
        V.el("div.bar", {}, V.el("h2", {}, `Job ${job}`), select, V.el("span.faint", {}, V.inside ? "" : "click a line to change it")),
        listing(rows, job, chosen.view, focus)];
    },
  };
})();
