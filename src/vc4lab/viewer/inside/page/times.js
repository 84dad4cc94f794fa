"use strict";
/* Counters, the time of the chip, and messages. */
(() => {
  const percent = (share) => `${Math.round(share * 100)}%`;

  V.views.counters = {
    title: "Counters", key: "8", depends: ["frame", "edition"],
    async render(place) {
      const found = await V.ask("counters", { frame: place.frame, edition: place.edition });
      return [
        V.el("h2", {}, "Performance counters"),
        V.el("div.wide", {}, V.table(["", "", "counts", ...found.jobs.map((one) => one.replace(/^frame \d+ /, ""))],
          found.rows.map(([id, unit, text, counts]) => V.el("tr", { class: counts.some(Boolean) ? "" : "same" }, V.el("td.faint", {}, String(id)), V.el("td", {}, unit), V.el("td", {}, text), counts.map((one) => V.el("td.n", {}, V.count(one)))))
        , { class: "fields" })),
        V.el("details", {}, V.el("summary", {}, `${found.not_modelled.length} are not modelled`), V.el("ul", {}, found.not_modelled.map((one) => V.el("li", {}, one))))];
    },
  };

  const bars = (shares) => V.el("div.shares", {}, [...shares].sort((a, b) => b.busy - a.busy).map((one) => [
    V.el("span", {}, one.count > 1 ? `${one.module} ×${one.count}` : one.module),
    V.el("div.share", { title: `at work ${percent(one.busy)}, no room for what it has done ${percent(one.blocked)}` }, V.el("i.busy", { style: { width: percent(one.busy) } }), V.el("i.blocked", { style: { width: percent(one.blocked) } })),
    V.el("span.n", {}, percent(one.busy))]));

  const WIDTH = 560;
  const strips = (timeline) => {
    const end = timeline.clocks[timeline.clocks.length - 1] || 1;
    return V.el("div.strips", {}, Object.entries(timeline.modules).map(([name, values]) => {
      let before = 0;
      const points = [`0,24`];
      values.forEach((value, at) => {
        const y = (24 - value * 22).toFixed(1);
        points.push(`${((before / end) * WIDTH).toFixed(1)},${y}`, `${((timeline.clocks[at] / end) * WIDTH).toFixed(1)},${y}`);
        before = timeline.clocks[at];
      });
      return [V.el("span", {}, name), V.svg("svg", { viewBox: `0 0 ${WIDTH} 24`, preserveAspectRatio: "none" }, V.svg("polygon", { points: `${points.join(" ")} ${WIDTH},24` }))];
    }));
  };

  const tracks = (job) => {
    const draws = job.draws.filter((one) => one.last > one.first);
    if (!draws.length) return null;
    const end = Math.max(...draws.map((one) => one.last), 1);
    const lanes = [];
    for (const draw of [...draws].sort((a, b) => a.first - b.first)) {
      let lane = lanes.findIndex((one) => one <= draw.first);
      if (lane < 0) lane = lanes.push(0) - 1;
      lanes[lane] = draw.last;
      draw.lane = lane;
    }
    const rows = Math.min(lanes.length, 24);
    return V.svg("svg", { viewBox: `0 0 ${WIDTH} ${rows * 16}`, class: "tracks", preserveAspectRatio: "none", height: rows * 16 },
      draws.filter((one) => one.lane < rows).map((one) => V.svg("rect", { x: ((one.first / end) * WIDTH).toFixed(2), y: one.lane * 16 + 1, width: Math.max(((one.last - one.first) / end) * WIDTH, 0.8).toFixed(2), height: 14, rx: 2 },
        V.svg("title", {}, `state ${one.draw}: clocks ${V.count(one.first)} to ${V.count(one.last)}, ${V.count(one.quads)} quads, ${V.count(one.primitives)} primitives`))));
  };

  V.views.timing = {
    title: "Timing", key: "9", depends: ["frame", "edition"],
    async render(place) {
      const found = await V.ask("timing", { frame: place.frame, edition: place.edition });
      return [
        V.el("h2", {}, "Time on the chip", V.el("span.faint", {}, ` · model ${found.chip}, ${found.board}, ${found.hertz / 1e6} MHz`)),
        found.notes.map((one) => V.note(one)),
        found.jobs.map((job) => V.el("section", {},
          V.el("h3", {}, `${job.name}: ${V.count(job.clocks)} clocks`, V.el("span.faint", {}, ` ${((job.clocks * 1000) / found.hertz).toFixed(2)} ms`)),
          V.el("p", {}, `binning ${V.count(job.binning)}, rendering ${V.count(job.rendering)} clocks; bounded by ${job.critical}. `, V.el("span.faint", {}, job.boards.map(([name, ms]) => `${name} ${ms.toFixed(2)} ms`).join(", "))),
          job.hints.map((one) => V.note(one, "odd")),
          V.el("h4", {}, "Modules"), bars(job.shares),
          job.timeline && [V.el("h4", {}, "Over time"), strips(job.timeline)],
          job.draws.length > 0 && [V.el("h4", {}, "Render states, from the first piece to the end of the last"), tracks(job)],
          job.shaders.length > 0 && [V.el("h4", {}, "Programs"), V.table(["", "state", "instructions", "clocks of QPUs", "waited longest for"], job.shaders.map((one) => [one.kind, String(one.draw), V.el("td.n", {}, V.count(one.instructions)), V.el("td.n", {}, V.count(one.clocks)), Object.entries(one.stalls).sort((a, b) => b[1] - a[1]).filter((pair) => pair[1]).slice(0, 2).map(([name, clocks]) => `${name} ${V.count(clocks)}`).join(", ")]), { class: "fields" })],
          job.notes.map((one) => V.el("p.faint", {}, one)))),
        !found.jobs.length && V.note("No job of this frame was timed.")];
    },
  };

  V.views.messages = {
    title: "Messages", key: "0", depends: ["frame", "edition"],
    async render() {
      const found = V.frame.messages;
      const kinds = { error: "bad", warning: "odd", hint: "odd", note: "" };
      return [
        V.el("h2", {}, V.many(found.length, "message")),
        found.map((one) => V.el("article.touch", { class: kinds[one.severity] },
          V.el("header", {}, V.el("b.outcome", {}, one.code), V.el("b", {}, one.title), one.draw > 0 && V.link(`draw ${one.draw}`, () => V.go({ draw: one.draw, job: one.job })), one.job > 0 && V.el("span.faint", {}, ` job ${one.job}`)),
          V.el("p", {}, one.text, one.address !== null && V.el("code.faint", {}, ` at ${V.address(one.address)}`)),
          one.cure && V.el("p.faint", {}, one.cure))),
        !found.length && V.note("Drawing this frame raised no message.")];
    },
  };
})();
