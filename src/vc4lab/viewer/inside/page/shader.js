"use strict";
/* A draw's programs: instructions beside their source, uniforms, and a run stepped. */
(() => {
  V.stage = "fragment";

  const listing = (program, run) => {
    const step = run && run.steps ? run.steps[run.at] : null;
    const uniforms = new Map();
    for (const one of program.uniforms) {
      if (!uniforms.has(one.instruction)) uniforms.set(one.instruction, []);
      uniforms.get(one.instruction).push(one);
    }
    const rows = program.lines.map((line, index) => {
      const now = step && step.address === line.address;
      const read = (uniforms.get(index) || []).map((one) => `u${one.index}=${one.value}`).join(" ");
      return V.el("tr", {
        class: now ? "now" : "", title: line.word, onclick: run && run.steps ? () => {
          const next = run.steps.findIndex((one, number) => number > run.at && one.address === line.address);
          const any = run.steps.findIndex((one) => one.address === line.address);
          if (any >= 0) V.stepTo(next >= 0 ? next : any);
        } : null },
      V.el("td.faint.n", { title: V.address(line.address) }, String(index)),
      V.el("td", {}, line.line ? V.editable(line.text, (text) => V.saveLine(program.job, line.line[0], line.line[1], text)) : line.text),
      V.el("td.faint", {}, read),
      program.source && V.el("td.faint", {}, line.source.join(",")));
    });
    const table = V.el("table.program", {}, V.el("tbody", {}, rows));
    const box = V.el("div.code.listing", {}, table);
    const scroll = () => {
      const now = table.querySelector(".now");
      if (now) box.scrollTop = now.offsetTop - box.clientHeight / 2;
    };
    requestAnimationFrame(scroll);
    return box;
  };

  const source = (program, run) => {
    if (!program.source) return null;
    const step = run && run.steps ? run.steps[run.at] : null;
    const lines = new Set(step ? (program.lines[step.index] || { source: [] }).source : []);
    return V.el("div.code.source", {}, program.source.lines.map((text, index) => V.el("div", { class: lines.has(index + 1) ? "now" : "" }, V.el("span.faint", {}, String(index + 1).padStart(3)), ` ${text}`)));
  };

  const uniformsTable = (program) =>
    V.table(["", "value", "bits", "for"], program.uniforms.map((one) => [
      String(one.index),
      one.line ? V.editable(one.value, (value) => V.saveLine(program.job, one.line[0], one.line[1], `${one.index},${value},${one.what}`)) : one.value,
      V.el("code.faint", {}, one.word), V.el("span", {}, one.meaning && `${one.meaning} `, V.el("span.faint", {}, one.what))]), { class: "fields" });

  const vertexPart = () => {
    const vertex = V.vertex;
    if (!vertex || vertex.error || vertex.draw.draw !== V.place.draw) return null;
    const names = (run) => V.table(["row", "", "bits"], run.rows_out.map((word, row) => [run.names[row], V.single(parseInt(word, 16)), V.el("code.faint", {}, word)]));
    return V.el("details", { open: true }, V.el("summary", {}, V.el("b", {}, `Vertex ${vertex.vertex}`), vertex.clip && V.el("span.faint", {}, ` clip ${vertex.clip.map(V.short).join(", ")}${vertex.outside.length ? `: beyond ${vertex.outside.join(", ")}` : ""}`)),
      V.el("div.pair", {}, vertex.coordinate && V.el("div", {}, V.link("step coordinate program", () => V.openRun({ made: vertex.coordinate.run })), names(vertex.coordinate)),
        vertex.vertex_program && V.el("div", {}, V.link("step vertex program", () => V.openRun({ made: vertex.vertex_program.run })), names(vertex.vertex_program))));
  };

  V.views.shader = {
    title: "Shader", key: "4", depends: ["frame", "edition", "draw"],
    async render(place) {
      const draw = V.frame.draws[(place.draw || 0) - 1];
      if (!draw) return V.note("Before any draw there is no program: choose a draw.");
      if (!draw.programs.length) return V.note("This draw has no shader record.");
      if (!draw.programs.includes(V.stage)) [V.stage] = draw.programs;
      let { run } = V;
      if (run && (run.edition !== place.edition || run.frame !== place.frame || (run.draw && run.draw !== place.draw))) run = V.run = null;
      if (run && run.stage && run.stage !== V.stage) run = null;
      const program = { job: draw.job, ...(await V.ask("program", { frame: place.frame, edition: place.edition, draw: place.draw, stage: V.stage })) };
      const vertex = V.el("input", { type: "number", min: draw.first, max: draw.last, value: V.vertex && V.vertex.vertex !== undefined ? V.vertex.vertex : draw.first, "aria-label": "Vertex" });
      return [
        V.el("div.bar", {},
          V.choice(draw.programs.map((one) => [one, one]), V.stage, (name) => { V.stage = name; V.refresh(); }, "Program"),
          V.el("code.faint", {}, `${V.address(program.address)} · ${program.lines.length} instructions`),
          V.stage !== "fragment" && !V.inside && V.el("span", {}, vertex, " ", V.button("step this vertex", () => V.openVertex(place.draw, Number(vertex.value))))),
        run && run.error && V.note(run.error, "bad"),
        run && run.steps && run.steps.length > 0 && V.el("div.running", {}, V.el("p.faint", {}, run.title), V.stepper(run), V.lanesTable(run)),
        !run && V.note(V.stage === "fragment" ? "Pick a pixel and choose “step” to see the registers of its lanes." : "Choose a vertex to see the registers of its lanes."),
        V.el("div.beside", {}, listing(program, run), source(program, run)),
        program.problems.map((one) => V.note(one, "bad")),
        V.stage !== "fragment" && vertexPart(),
        program.textures.map((one) => V.el("p.faint", {}, `texture of request ${one.request}: ${one.text}`)),
        program.uniforms.length > 0 && V.el("details", { open: true }, V.el("summary", {}, V.el("b", {}, "Uniforms"), V.el("span.faint", {}, ` from ${V.address(program.uniforms_address)}`)), uniformsTable(program)),
      ];
    },
  };
})();
