"use strict";
/* The history of the picked pixel: each primitive, what became of it, and why. */
(() => {
  const KINDS = { drawn: "good", discarded: "odd", "no colour written": "odd" };

  const samples = (state, blueFirst) => {
    const texts = state.colours.map((words) => words.join(":"));
    const shown = new Set(texts).size === 1 ? state.colours.slice(0, 1) : state.colours;
    return shown.map((words) => (words.length > 1 ? V.el("code", {}, words.join(":")) : V.swatch(V.rgba(words[0], blueFirst))));
  };
  const numbers = (values, digits) => [...new Set(values)].map((one) => V.hex(one, digits)).join("/");

  const change = (name, before, after) => {
    const same = before === after;
    return V.el("tr", { class: same ? "same" : "" }, V.el("th", {}, name), V.el("td", {}, V.el("code", {}, before)), V.el("td", {}, same ? "" : "→"), V.el("td", {}, same ? "" : V.el("code", {}, after)));
  };

  /** The last job before one that draws to an address. */
  const maker = (before, address) => V.frame.jobs.filter((job) => job.job < before && (job.colour === address || job.full.includes(address))).pop();

  const toTexel = (job, source) => V.go({ job: job.job, draw: job.draws.length ? job.draws[job.draws.length - 1] : V.place.draw, x: source.column, y: source.row });

  const texel = (history, one) => {
    const source = one.source;
    const made = source && maker(history.job, source.address);
    const where = source && `about ${source.column},${source.row} of ${source.width}×${source.height} ${source.type} at ${V.address(source.address)}`;
    return V.el("div.fact", {}, V.el("b", {}, `texture ${one.request}`), ` (${one.coordinates.slice(0, 2).map(V.short).join(", ")}) → `, V.el("code", {}, one.words.join(" ")), where && V.el("div.faint", {}, where, made && [", ", V.link(`drawn by job ${made.job}`, () => toTexel(made, source), "The history of that texel")]));
  };

  const touchCard = (history, one, number) => {
    const blue = history.blue_first;
    const here = { job: history.job, x: history.x, y: history.y };
    return V.el("article.touch", { class: KINDS[one.outcome] || "bad" },
      V.el("header", {}, V.el("b.outcome", {}, one.outcome), one.draw ? V.link(`draw ${one.draw}`, () => V.go({ draw: one.draw, job: history.job }), "Go to this draw") : V.el("span", {}, "a list of its own"),
        V.el("span", {}, ` primitive ${one.primitive ?? "?"}`), V.el("span.faint", {}, one.vertices.length ? ` vertices ${one.vertices.map((v) => (Array.isArray(v) ? `(${v})` : v)).join(", ")}` : "")),
      one.why && V.el("p.why", {}, one.why),
      V.el("div.colours", {}, samples(one.before, blue), V.el("span", {}, "→"), samples(one.after, blue)),
      V.el("table.changes", {},
        change("depth", numbers(one.before.depths, 6), numbers(one.after.depths, 6)),
        change("stencil", numbers(one.before.stencils, 2), numbers(one.after.stencils, 2))),
      V.el("div.fact", {}, `fragment depth ${V.hex(one.depth, 6)}, W ${V.short(one.w)}${one.before.colours.length > 1 ? `, samples ${one.samples.toString(2).padStart(4, "0")}` : ""}${one.reverse ? ", faces backwards" : ""}`),
      one.varyings.length > 0 && V.el("div.fact", {}, V.el("b", {}, "varyings "), one.varyings.map(V.short).join(", ")),
      one.texels.slice(0, 8).map((request) => texel(history, request)),
      one.texels.length > 8 && V.el("div.fact.faint", {}, `and ${one.texels.length - 8} more requests`),
      V.el("footer", {},
        V.button(`step ${one.instructions} instructions`, () => V.openRun({ name: "run", values: { ...here, touch: number }, draw: one.draw }), { title: "Registers of all 16 lanes, instruction by instruction" }),
        one.draw && V.button("state", () => V.go({ draw: one.draw, view: "state" })),
        one.draw && one.vertices.length > 0 && !Array.isArray(one.vertices[0]) && one.vertices.map((vertex) => V.link(`vertex ${vertex}`, () => V.go({ draw: one.draw, view: "shader" }, V.openVertex(one.draw, vertex)), "Its fetch and programs"))));
  };

  const part = (history) => [
    history.earlier && [part(history.earlier), V.el("h3", {}, `then loaded into job ${history.job}`)],
    V.el("p.faint", {}, `${V.many(history.primitives, "primitive")} in the list of the tile at ${history.tile.join(",")}, ${history.touches.length} of which cover the pixel${history.loaded === null ? "" : `; the tile was loaded from ${V.address(history.loaded)}`}`),
    history.touches.map((one, number) => touchCard(history, one, number)),
    !history.touches.length && V.note("Nothing touches this pixel: it is what the tile was cleared to, or loaded with."),
  ];

  V.views.pixel = {
    title: "Pixel", key: "1", depends: ["frame", "edition", "job", "x", "y"],
    async render(place) {
      if (place.x === null) return V.note(V.inside ? "Click one of the marked pixels of the picture: this page has the history of some." : "Click a pixel of the picture: each primitive that touched it, and why it did or did not change it.");
      const history = await V.ask("pixel", { frame: place.frame, edition: place.edition, job: V.jobNow(), x: place.x, y: place.y });
      const last = history.final !== null && history.final.length === 8 ? V.swatch(V.rgba(history.final, history.blue_first)) : V.el("code", {}, history.final || "");
      return [V.el("h2", {}, `Pixel ${history.x}, ${history.y}`, " ", last), part(history)];
    },
  };
})();
