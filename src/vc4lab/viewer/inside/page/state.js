"use strict";
/* The state at a draw, record by record, with the names of the manual; a value can be edited. */
(() => {
  /** Lets a text be edited where it stands; `save` gets the new one. */
  V.editable = (text, save, title = "Click to change it, and draw again") => {
    if (V.inside) return V.el("span", {}, text);
    const shown = V.el("button.edit", { type: "button", title }, text);
    shown.addEventListener("click", (event) => {
      event.stopPropagation();
      const input = V.el("input", { value: text, class: "editing", spellcheck: "false", size: String(Math.max(text.length + 2, 8)) });
      const problem = V.el("span.problem", {});
      const box = V.el("span", {}, input, problem);
      const stop = () => box.replaceWith(shown);
      input.addEventListener("keydown", async (key) => {
        key.stopPropagation();
        if (key.key === "Escape") stop();
        if (key.key !== "Enter") return;
        if (input.value === text) { stop(); return; }
        try {
          await save(input.value);
        } catch (error) {
          problem.textContent = ` ${error.message}`;
        }
      });
      input.addEventListener("blur", () => setTimeout(() => !problem.textContent && box.isConnected && stop(), 150));
      shown.replaceWith(box);
      input.focus();
      input.select();
    });
    return shown;
  };

  /** Makes an edition with a line that says something else. */
  V.saveLine = async (job, view, line, text) => {
    const edition = await V.edit({ frame: V.place.frame, edition: V.place.edition, job, view, line, text });
    V.editions = Math.max(V.editions, edition + 1);
    V.go({ edition });
  };

  /** A line of a list with another value of a field. */
  V.withField = (text, name, value) => {
    const kept = text.split(/ +/).filter((word) => word !== name && !word.startsWith(`${name}=`));
    return `${kept.join(" ")} ${name}=${value}`;
  };

  const lineOf = (record) => {
    const [, , text] = record.line;
    // The address, the id and the title of a record's line are apart from its fields.
    if (record.id === null) return [text.slice(0, 8), text.slice(8).trim()];
    const head = `${text.slice(0, text.indexOf(record.title) + record.title.length)}`;
    return [head, text.slice(head.length).split("  [")[0].trim()];
  };

  const card = (record, job, open) => {
    const save = (name) => async (value) => {
      const [head, fields] = lineOf(record);
      await V.saveLine(job, record.line[0], record.line[1], `${head}  ${V.withField(fields, name, value)}`);
    };
    return V.el("details.record", { open },
      V.el("summary", {}, record.id !== null && V.el("span.id", {}, String(record.id)), V.el("b", {}, record.title), V.el("code.faint", {}, V.address(record.address))),
      V.el("code.bytes", {}, record.bytes.replace(/(..)/g, "$1 ").trim()),
      V.table(null, record.fields.map(([name, text, bits, doc]) => [
        V.el("td", {}, name.replaceAll("_", " ")), V.el("td", {}, record.line ? V.editable(text, save(name)) : text), V.el("td.faint", {}, bits), V.el("td.faint", {}, doc)]), { class: "fields" }));
  };

  V.views.state = {
    title: "State", key: "2", depends: ["frame", "edition", "draw"],
    async render(place) {
      if (!place.draw) return V.note("Before any draw there is no state: choose a draw.");
      const state = await V.ask("state", { frame: place.frame, edition: place.edition, draw: place.draw });
      const { draw } = state;
      const counts = Object.entries(draw.counts).filter(([name, count]) => count && name !== "blocks").map(([name, count]) => `${V.count(count)} ${name}`).join(", ");
      return [
        V.el("h2", {}, `Draw ${draw.draw}`, V.el("span.faint", {}, ` · ${draw.vertices} vertices, ${draw.mode}`)),
        V.el("p.faint", {}, `Binned: ${counts || "nothing"}. ${V.inside ? "" : "Click a value to change it."}`),
        card(state.record, draw.job, true),
        V.el("h3", {}, "Records in force"),
        state.records.map((one) => card(one, draw.job, one.id === 96)),
        state.shader.length > 0 && V.el("h3", {}, "Shader record"),
        state.shader.map((one) => card(one, draw.job, false)),
      ];
    },
  };
})();
