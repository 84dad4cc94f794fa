"use strict";
/* The list of events: jobs, records of state that changed, draws, messages; with search. */
(() => {
  const ROW = 22;

  V.Events = class {
    constructor(box) {
      this.rows = [];
      this.found = [];
      this.memory = false;
      this.search = V.el("input", { type: "search", placeholder: "record, code, draw, address", "aria-label": "Search events", id: "search" });
      this.search.addEventListener("input", () => this.filter());
      this.search.addEventListener("keydown", (event) => this.key(event));
      this.total = V.el("span.faint", {});
      this.toggle = V.el("input", { type: "checkbox", id: "memory" });
      this.toggle.addEventListener("change", () => { this.memory = this.toggle.checked; this.filter(); });
      this.space = V.el("div.space", {});
      this.list = V.el("div.rows", { tabindex: "0", role: "listbox", "aria-label": "Events" }, this.space);
      this.list.addEventListener("scroll", () => this.show());
      new ResizeObserver(() => this.show()).observe(this.list);
      box.append(
        V.el("div.bar", {}, this.search),
        V.el("div.bar.small", {}, this.total, V.el("label", { for: "memory" }, this.toggle, " memory")),
        this.list);
      V.watch(["draw", "job"], () => this.follow());
    }

    load(rows) {
      this.rows = rows.map(([kind, text, job, draw, address], number) => ({
        kind, text, job, draw, address, number, words: `${text} ${V.address(address)} d${draw} j${job}`.toLowerCase() }));
      this.filter();
      this.follow();
    }

    filter() {
      const words = this.search.value.toLowerCase().trim().split(/\s+/).filter(Boolean);
      const exact = /^(draw|job) ?(\d+)$/.exec(this.search.value.toLowerCase().trim());
      this.found = this.rows.filter((row) => {
        if (row.kind === "memory" && !this.memory && !words.length) return false;
        if (exact) return row.kind !== "memory" && row[exact[1]] === Number(exact[2]);
        return words.every((word) => row.words.includes(word));
      });
      this.total.textContent = words.length ? `${V.count(this.found.length)} of ${V.count(this.rows.length)} rows` : V.many(this.rows.length, "row");
      this.space.style.height = `${this.found.length * ROW}px`;
      this.list.scrollTop = 0;
      this.show();
    }

    show() {
      const first = Math.max(Math.floor(this.list.scrollTop / ROW) - 4, 0);
      const end = Math.min(first + Math.ceil(this.list.clientHeight / ROW) + 8, this.found.length);
      const made = [];
      for (let place = first; place < end; place += 1) made.push(this.row(this.found[place], place));
      this.space.replaceChildren(...made);
    }

    row(row, place) {
      const now = row.kind === "draw" ? row.draw === V.place.draw : row.kind === "job" && row.job === V.place.job && !V.place.draw;
      return V.el("div.row", {
        class: `${row.kind}${now ? " now" : ""}`, role: "option", "aria-selected": String(now), title: row.address ? `${row.text}\n${V.address(row.address)}` : row.text,
        style: { top: `${place * ROW}px` }, onclick: () => this.choose(row) }, V.el("i", {}), row.text);
    }

    choose(row) {
      if (row.kind === "draw" || (row.kind === "message" && row.draw)) V.go({ draw: row.draw, job: row.job, primitive: null, ...(row.kind === "message" ? { view: "messages" } : {}) });
      else if (row.kind === "record") V.go({ draw: row.draw, job: row.job, view: "state" });
      else if (row.kind === "message") V.go({ view: "messages" });
      else if (row.job) {
        const draws = V.frame.jobs[row.job - 1].draws;
        V.go({ job: row.job, draw: draws.length ? draws[draws.length - 1] : V.place.draw });
      }
    }

    /** The row of the draw that is looked at comes into sight. */
    follow() {
      const place = this.found.findIndex((row) => row.kind === "draw" && row.draw === V.place.draw);
      if (place >= 0) {
        const top = place * ROW;
        const { scrollTop, clientHeight } = this.list;
        if (top < scrollTop + ROW || top > scrollTop + clientHeight - 2 * ROW) this.list.scrollTop = top - clientHeight / 2;
      }
      this.show();
    }

    key(event) {
      if (event.key === "Escape") {
        this.search.value = "";
        this.filter();
        this.search.blur();
      } else if (event.key === "Enter" && this.found.length) {
        const hits = this.found.filter((row) => row.draw);
        this.choose(hits.find((row) => row.draw > V.place.draw) || hits[0] || this.found[0]);
      }
    }
  };
})();
