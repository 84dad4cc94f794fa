"use strict";
/* A program's run, stepped: registers of the lanes at an instruction. */
(() => {
  V.run = null;

  /** Opens a run in the shader view: {name, values, draw} is the question, {made} an answer that is there. */
  V.openRun = async ({ name, values, draw, made }) => {
    const run = made || (await V.ask(name, { frame: V.place.frame, edition: V.place.edition, ...values }).catch((error) => ({ error: error.message })));
    V.run = { ...run, at: run.steps ? Math.max(run.steps.length - 1, 0) : 0, all: false, floats: true, frame: V.place.frame, edition: V.place.edition };
    if (run.steps) V.run.at = 0;
    V.stage = run.stage || V.stage;
    V.go({ ...(draw ? { draw } : {}), view: "shader" });
    V.refresh();
  };

  V.openVertex = async (draw, vertex) => {
    const found = await V.ask("vertex", { frame: V.place.frame, edition: V.place.edition, draw, vertex }).catch((error) => ({ error: error.message }));
    V.vertex = found;
    const program = found.coordinate || found.vertex_program;
    if (program) V.openRun({ made: program.run, draw });
    else { V.run = { error: found.error || "its vertices were shaded beforehand" }; V.go({ draw, view: "shader" }); V.refresh(); }
  };

  /** The registers after the steps up to one: name → lanes; `fresh`: those that the last one wrote. */
  V.registersAt = (run, at) => {
    const held = new Map();
    const fresh = new Set();
    for (let number = 0; number <= at && number < run.steps.length; number += 1) {
      fresh.clear();
      for (const [name, values, mask] of run.steps[number].writes) {
        const before = held.get(name) || new Array(16).fill(null);
        held.set(name, before.map((old, lane) => ((mask >> lane) & 1 ? values[lane] : old)));
        fresh.add(name);
      }
    }
    return { held, fresh };
  };

  const order = (name) => {
    const found = /^(r|ra|rb)(\d+)$/.exec(name);
    return found ? { r: 0, ra: 100, rb: 200 }[found[1]] + Number(found[2]) : 300;
  };

  V.lanesTable = (run) => {
    const { held, fresh } = V.registersAt(run, run.at);
    const quad = run.lane & ~3;
    const lanes = run.all ? [...Array(16).keys()] : [0, 1, 2, 3].map((one) => quad + one);
    const names = [...held.keys()].sort((a, b) => order(a) - order(b) || a.localeCompare(b));
    const show = run.floats ? V.single : V.hex;
    return V.el("div.wide", {}, V.table(
      ["", ...lanes.map((lane) => `lane ${lane}${lane === run.lane ? " ◂" : ""}`)],
      names.map((name) => V.el("tr", { class: fresh.has(name) ? "fresh" : "" }, V.el("th", {}, name),
        lanes.map((lane) => {
          const word = held.get(name)[lane];
          return V.el("td.n", { class: lane === run.lane ? "own" : "", title: word === null ? "not written" : `${V.address(word)}  ${V.single(word)}  ${word | 0}` }, word === null ? "·" : show(word));
        }))), { class: "lanes" }));
  };

  V.stepTo = (at) => {
    const run = V.run;
    if (!run || !run.steps) return;
    run.at = Math.min(Math.max(at, 0), run.steps.length - 1);
    V.refresh();
  };

  V.stepper = (run) => {
    const step = run.steps[run.at];
    return V.el("div.stepper", {},
      V.button("|◀", () => V.stepTo(0), { title: "First instruction" }),
      V.button("◀", () => V.stepTo(run.at - 1), { title: "Back ([)" }),
      V.el("input", { type: "range", min: 0, max: run.steps.length - 1, value: run.at, "aria-label": "Step", oninput: (event) => V.stepTo(Number(event.target.value)) }),
      V.button("▶", () => V.stepTo(run.at + 1), { title: "Step (])" }),
      V.el("span", {}, `step ${run.at + 1} of ${run.total}`),
      V.el("label", {}, V.el("input", { type: "checkbox", checked: run.all, onchange: (event) => { run.all = event.target.checked; V.refresh(); } }), " all lanes"),
      V.el("label", {}, V.el("input", { type: "checkbox", checked: !run.floats, onchange: (event) => { run.floats = !event.target.checked; V.refresh(); } }), " hex"),
      V.link("close", () => { V.run = null; V.vertex = null; V.refresh(); }),
      V.el("code.instruction", {}, `${V.hex(step.address)}  ${step.text}`));
  };
})();
